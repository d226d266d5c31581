#!/usr/bin/env bash
# Installs what package-lock.json pins into node_modules, once for each of its states.
set -euo pipefail
cd "$(dirname "$0")"
key=$(git hash-object package.json package-lock.json | tr -d '\n')-$(node --version)
root=$(cd ../.. && pwd)
mkdir -p "$root/.cache/typescript"
# One process installs it, and the others wait. The lock ends with the descriptor, in this shell.
exec 9>"$root/.cache/typescript/modules.lock"
"${PYTHON:-python3}" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
if [ "$(cat node_modules/.complete 2>/dev/null)" != "$key" ]; then
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	echo "$key" >node_modules/.complete
fi
