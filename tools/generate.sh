#!/usr/bin/env bash
# Generates from proto/ with the pinned plugins: Go, and the stubs of the clients in
# Python and TypeScript; and from the module tiktoken-go-loader the indexes of its
# vocabularies. Works offline once the plugins are there.
#
#   tools/generate.sh            writes pkg/gen, clients/* and pkg/tokens/*.index
#   tools/generate.sh --check    fails, with the difference, unless they are what it would write
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(tools/install.sh tools)
export PATH=$bin:$PATH

if [ "${1-}" != --check ]; then
	buf generate
	go generate ./pkg/tokens
	for client in clients/*/generate.sh; do
		"$client"
	done
	exit
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate -o "$fresh"
failed=0
if ! diff -ru pkg/gen "$fresh/pkg/gen"; then
	echo "pkg/gen is not what proto/ gives: run make generate and commit the result" >&2
	failed=1
fi
mkdir "$fresh/tokens"
go run ./pkg/tokens/internal/vocabulary/generate "$fresh/tokens"
for index in "$fresh"/tokens/*.index; do
	if ! cmp "$index" "pkg/tokens/${index##*/}"; then
		echo "pkg/tokens/${index##*/} does not fit tiktoken-go-loader: run make generate and commit the result" >&2
		failed=1
	fi
done
for client in clients/*/generate.sh; do
	"$client" --check || failed=1
done
exit $failed
