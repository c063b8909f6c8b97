#!/usr/bin/env bash
# Makes sure that redis-server is in the path: installs Debian's where it can, and says what to do
# where it cannot.
set -euo pipefail
if command -v redis-server >/dev/null; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing redis-server from Debian ..." >&2
	export DEBIAN_FRONTEND=noninteractive
	# Installed, not started: tests run servers of their own on free ports.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		trap 'rm -f "$policy"' EXIT
	fi
	if apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends redis-server >&2; then
		exit 0
	fi
	echo "the installation failed" >&2
fi
cat >&2 <<'EOF'
redis-server 7.0 or later is needed and not in the path. Install it, for example:
  sudo apt-get install redis-server      # Debian, Ubuntu
  sudo dnf install redis                 # Fedora
  brew install redis                     # macOS
EOF
exit 1
