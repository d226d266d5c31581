#!/usr/bin/env bash
# Lints and type-checks the package, and tests it against a real server.
#
#   clients/python/test.sh [PYTEST ARGUMENTS]
#
# HARNESS names the binary to test against; without it one is built. The last line is pytest's.
set -euo pipefail
cd "$(dirname "$0")"
export VENV
VENV=$(./venv.sh)
if [ -z "${HARNESS-}" ]; then
	HARNESS=$(cd ../.. && pwd)/.cache/program/harness
	../../tools/build.sh .cache/program/harness -buildvcs=false -ldflags '-s -w'
fi
export HARNESS
"$VENV/bin/ruff" check --quiet --no-cache .
"$VENV/bin/ruff" format --check --quiet --no-cache .
"$VENV/bin/mypy" --cache-dir "$VENV/mypy"
# Where gateways note their keys, so that the user's own folder is unchanged.
export XDG_CONFIG_HOME="$(cd ../.. && pwd)/.cache/python/config"
exec "$VENV/bin/python" -B -m pytest -p no:cacheprovider "$@"
