#!/usr/bin/env bash
# Installs what package-lock.json pins into node_modules, once for each of its states.
set -euo pipefail
cd "$(dirname "$0")"
key=$(git hash-object package.json package-lock.json | tr -d '\n')-$(node --version)
if [ "$(cat node_modules/.complete 2>/dev/null)" != "$key" ]; then
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	echo "$key" >node_modules/.complete
fi
