#!/usr/bin/env bash
# Fails, with the names, if any Go file of the tree is not formatted.
set -euo pipefail
cd "$(dirname "$0")/../.."
unformatted=$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ -e "$f" ] && echo "$f"; done | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "not formatted (run make fmt):" >&2
	echo "$unformatted" >&2
	exit 1
fi
