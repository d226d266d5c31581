#!/usr/bin/env bash
# Generates Go from proto/ with the pinned plugins; works offline once these are built.
#
#   tools/generate.sh            writes pkg/gen
#   tools/generate.sh --check    fails, with the difference, unless pkg/gen is what proto/ gives
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(tools/install.sh tools)
export PATH=$bin:$PATH

if [ "${1-}" != --check ]; then
	exec buf generate
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate -o "$fresh"
if ! diff -ru pkg/gen "$fresh/pkg/gen"; then
	echo "pkg/gen is not what proto/ gives: run make generate and commit the result" >&2
	exit 1
fi
