#!/usr/bin/env bash
# Writes the parts of the chart that are the same as in config/: the CRD, the roles, the policies.
set -euo pipefail
cd "$(dirname "$0")/.."
chart=${1:-charts/conch}
mkdir -p "$chart/crds" "$chart/templates"
cp config/crd/bases/*.yaml "$chart/crds/"
# join writes files as one template, inside a condition if CONDITION is set.
join() {
	echo "{{- /* Written by hack/chart.sh from config/: make manifests. */ -}}"
	if [[ -n ${CONDITION:-} ]]; then echo "{{- if $CONDITION }}"; fi
	for file in "$@"; do
		echo "---"
		sed '/^---$/{1d}' "$file"
	done | sed -E 's/(namespace: |kube-system, |system:serviceaccount:)conch-system/\1{{ .Release.Namespace }}/'
	if [[ -n ${CONDITION:-} ]]; then echo "{{- end }}"; fi
}
# resources lists a kustomization's files.
resources() {
	sed -n "s#^  - \(.*\.yaml\)#$1/\1#p" "$1/kustomization.yaml"
}
mapfile -t validating < <(resources config/policies/validating)
mapfile -t mutating < <(resources config/policies/mutating)
join config/rbac/service_account.yaml config/rbac/role.yaml config/rbac/role_binding.yaml config/rbac/user_roles.yaml >"$chart/templates/rbac.yaml"
CONDITION=.Values.policies.enabled join "${validating[@]}" >"$chart/templates/policies.yaml"
CONDITION="and .Values.policies.enabled .Values.policies.mutating" join "${mutating[@]}" >"$chart/templates/policies-mutating.yaml"
