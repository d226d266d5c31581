#!/usr/bin/env bash
# Makes the Python environment of a file of requirements, once, and prints its folder.
#
#   PYTHON=python3.12 clients/python/venv.sh [REQUIREMENTS]
#
# It lives in the user's cache, which all checkouts share, under the digest of what it is made from.
set -euo pipefail
requirements=$(realpath "${1-$(dirname "$0")/requirements.txt}")
cd "$(dirname "$0")"
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
	echo "$python is too old: Python 3.10 or newer is needed; name another one with PYTHON=" >&2
	exit 1
}
key=$("$python" - "$requirements" <<-'EOF'
	import hashlib, sys
	made_from = (sys.version + sys.prefix).encode() + open(sys.argv[1], "rb").read()
	print(hashlib.sha256(made_from).hexdigest()[:16])
EOF
)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/harnessmesh/python
mkdir -p "$cache"
# Its programs name this folder, so a link to it must not matter.
venv=$(cd "$cache" && pwd -P)/$key
# One process makes it, and the others wait. The lock ends with the descriptor, in this shell.
exec 9>"$venv.lock"
"$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
if [ ! -e "$venv/complete" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv" >&2
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--requirement "$requirements" >&2
	touch "$venv/complete"
fi
echo "$venv"
