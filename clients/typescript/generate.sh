#!/usr/bin/env bash
# Generates src/gen from proto/, with the pinned buf of tools/ and the plugin of package-lock.json.
#
#   clients/typescript/generate.sh            writes it
#   clients/typescript/generate.sh --check    fails, with the difference, unless it is what proto/ gives
set -euo pipefail
cd "$(dirname "$0")"
./modules.sh
bin=$(../../tools/install.sh tools)
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

export LC_ALL=C
plugin='[{"local": "'$PWD'/node_modules/.bin/protoc-gen-es", "out": "'$fresh/gen'", "opt": ["target=ts", "import_extension=js"]}]'
template='{"version": "v2", "plugins": '$plugin'}'
(cd ../.. && "$bin/buf" generate --template "$template")
(cd proto && "$bin/buf" generate --config '{"version": "v2"}' --template "$template")
{
	echo "// Generated from proto/ by clients/typescript/generate.sh. Do not edit."
	(cd "$fresh/gen" && find harness -name '*_pb.ts' | sort | sed 's|\(.*\)\.ts$|export * from "./\1.js";|')
} >"$fresh/gen/pb.ts"

if [ "${1-}" != --check ]; then
	rm -rf src/gen
	cp -r "$fresh/gen" src/gen
	exit
fi
if ! diff -ruN src/gen "$fresh/gen"; then
	echo "clients/typescript/src/gen is not what proto/ gives: run make generate and commit the result" >&2
	exit 1
fi
