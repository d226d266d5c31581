#!/usr/bin/env bash
# Builds the program into PATH, with the flags and so the build cache of make test.
#
#   tools/build.sh PATH [GO BUILD ARGUMENTS]
#
# The first line names the program that is compiled; then the number of compiled packages follows on stderr.
# A second call without a change takes about a second.
set -euo pipefail
path=${1:?usage: tools/build.sh PATH [GO BUILD ARGUMENTS]}
shift
cd "$(dirname "$0")/.."
export GOFLAGS="-trimpath ${GOFLAGS-}" CGO_ENABLED=0
echo "building $path from ./cmd/harness: on two cores about two minutes the first time, then seconds" >&2
# With -v, go prints the import path of each package that it compiles.
go build -v -o "$path" "$@" ./cmd/harness 2>&1 | awk -v terminal="$([ -t 2 ] && echo yes || true)" '
	/^[A-Za-z0-9._\/-]+$/ {
		n++
		if (terminal) printf "\r%d packages compiled", n
		else if (n % 200 == 0) print n " packages compiled"
		fflush()
		next
	}
	{ print (terminal && n ? "\n" : "") $0 }
	END { if (terminal && n) print "" }
' >&2
