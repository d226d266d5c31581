#!/usr/bin/env bash
# Runs the tests of the whole system, whose names start with TestSystem: meshes whose processes die,
# thousands of seeds of the simulator, random faults, the gym, hand-overs.
#
#   tools/system.sh [--only REGEXP | --without REGEXP] [GO TEST ARGUMENTS]
#
# --only and --without choose by import path. Random faults come first, without the load of other tests. Then
# two packages run at a time; the longest start first.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="-trimpath ${GOFLAGS-}" CGO_ENABLED=${CGO_ENABLED-0}
packages=$(tools/packages.sh TestSystem | cut -d' ' -f1 | sort -u)
case ${1-} in
--only) packages=$(grep -E -- "$2" <<<"$packages") || packages= && shift 2 ;;
--without) packages=$(grep -Ev -- "$2" <<<"$packages") || packages= && shift 2 ;;
esac
[ -n "$packages" ] || { echo "no tests named TestSystem…" >&2; exit 1; }
echo "go test -run '^TestSystem' on $(wc -w <<<"$packages") packages: on two cores about six minutes for all"
alone=$(grep -E '/test/chaos$' <<<"$packages") || alone=
rest=$({ grep -E '/(test/(mesh|simulation)|pkg/runlog/jetstream)$' <<<"$packages" | sort -r; grep -v '/test/chaos$' <<<"$packages"; } | awk '!n[$0]++') || rest=
status=0
# shellcheck disable=SC2086 # import paths hold no spaces
[ -z "$alone" ] || go test -vet=off -timeout 30m -run '^TestSystem' "$@" $alone || status=$?
# shellcheck disable=SC2086
[ -z "$rest" ] || go test -vet=off -p 2 -timeout 30m -run '^TestSystem' "$@" $rest || status=$?
exit $status
