#!/usr/bin/env bash
# Runs the tests of the whole system, whose names start with TestSystem: meshes whose processes die,
# thousands of seeds of the simulator, random faults, the gym, hand-overs.
#
#   tools/system.sh [GO TEST ARGUMENTS]
#
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="-trimpath ${GOFLAGS-}" CGO_ENABLED=${CGO_ENABLED-0}
packages=$(tools/packages.sh TestSystem | cut -d' ' -f1 | sort -u)
[ -n "$packages" ] || { echo "no tests named TestSystem…" >&2; exit 1; }
echo "go test -run '^TestSystem' on $(wc -w <<<"$packages") packages: on two cores about six minutes"
# shellcheck disable=SC2086 # import paths hold no spaces
exec go test -vet=off -timeout 30m -run '^TestSystem' "$@" $packages
