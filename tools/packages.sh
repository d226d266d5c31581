#!/usr/bin/env bash
# Lists the functions of the tests whose names start with a prefix, as "package function" lines.
#
#   tools/packages.sh Benchmark [PATTERN...]
set -euo pipefail
prefix=${1:?usage: tools/packages.sh PREFIX [PATTERN...]}
shift
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ./...

go list -e -f '{{$p := .ImportPath}}{{$d := .Dir}}{{range .TestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}' "$@" |
	while read -r package file; do
		[ -z "$file" ] || sed -nE "s~^func (${prefix}[A-Z_0-9][A-Za-z_0-9]*)\(.*~$package \1~p" "$file"
	done | sort -u
