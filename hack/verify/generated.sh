#!/usr/bin/env bash
# Generates into a copy and compares, so that it never touches the tree and needs no clean checkout.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
gen=${CONTROLLER_GEN:-bin/tools/controller-gen}
[[ $gen = /* ]] || gen=$root/$gen
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$root"

"$gen" crd paths=./api/... output:crd:dir="$dir/crd"
"$gen" rbac:roleName=conch paths=./controllers/... output:rbac:dir="$dir/rbac"
"$gen" object paths=./api/... output:object:dir="$dir/object"

stale=0
check() {
	if ! diff -u "$1" "$2"; then
		echo "$1 is not current: run make generate" >&2
		stale=1
	fi
}
check config/crd/bases/conch.dev_distributedlocks.yaml "$dir/crd/conch.dev_distributedlocks.yaml"
check config/rbac/role.yaml "$dir/rbac/role.yaml"
check api/v1alpha1/zz_generated.deepcopy.go "$dir/object/zz_generated.deepcopy.go"
hack/chart.sh "$dir/chart"
while read -r part; do
	check "charts/conch/$part" "$dir/chart/$part"
done < <(cd "$dir/chart" && find . -type f | sort)
exit "$stale"
