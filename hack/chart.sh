#!/usr/bin/env bash
# Writes the parts of the chart that are the same as in config/: the CRD, the roles, the policies.
set -euo pipefail
cd "$(dirname "$0")/.."
chart=${1:-charts/conch}
mkdir -p "$chart/crds" "$chart/templates"
cp config/crd/bases/*.yaml "$chart/crds/"
join() {
	echo "{{- /* Written by hack/chart.sh from config/: make manifests. */ -}}"
	for file in "$@"; do
		echo "---"
		sed '/^---$/{1d}' "$file"
	done | sed 's/namespace: conch-system/namespace: {{ .Release.Namespace }}/'
}
join config/rbac/service_account.yaml config/rbac/role.yaml config/rbac/role_binding.yaml config/rbac/user_roles.yaml >"$chart/templates/rbac.yaml"
join config/policy/confirm_dead.yaml >"$chart/templates/policy.yaml"
