#!/usr/bin/env bash
# Runs the commands of the README's sh blocks, in order, in a fresh clone of this repository's HEAD.
# COLD=1 also builds the control plane anew, which takes about 12 minutes more.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone --quiet "$root" "$clone/conch"
cd "$clone/conch"
if [ -z "${COLD:-}" ]; then
	export CONTROLPLANE="$root/bin/controlplane" CONCH_CONTROLPLANE="$root/bin/controlplane"
fi
commands=$(awk '/^```sh$/ {on = 1; next} /^```/ {on = 0} on {sub(/ *#.*/, ""); if ($0 != "") print}' README.md)
[ -n "$commands" ] || { echo "readme-test: README.md has no sh blocks" >&2; exit 1; }
count=0
while IFS= read -r command; do
	echo "readme-test: $command"
	bash -euo pipefail -c "$command" </dev/null
	count=$((count + 1))
done <<<"$commands"
echo "readme-test: ok ($count commands)"
