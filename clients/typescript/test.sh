#!/usr/bin/env bash
# Type-checks the package, and tests it against a real server.
#
#   clients/typescript/test.sh [NODE ARGUMENTS], such as --test-name-pattern=TLS
#
# HARNESS names the binary to test against; without it one is built. The last lines are those of
# node's test runner.
set -euo pipefail
cd "$(dirname "$0")"
./modules.sh
if [ -z "${HARNESS-}" ]; then
	HARNESS=$(cd ../.. && pwd)/.cache/program/harness
	../../tools/build.sh .cache/program/harness -buildvcs=false -ldflags '-s -w'
fi
export HARNESS
rm -rf dist
node_modules/.bin/tsc
# Where gateways note their keys, so that the user's own folder is unchanged.
export XDG_CONFIG_HOME="$(cd ../.. && pwd)/.cache/typescript/config"
exec node --test --test-reporter=spec --test-concurrency=2 "$@" dist/test/*.test.js
