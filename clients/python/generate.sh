#!/usr/bin/env bash
# Generates src/harnessmesh/gen from proto/, with the pinned plugins of requirements.txt.
#
#   clients/python/generate.sh            writes it
#   clients/python/generate.sh --check    fails, with the difference, unless it is what proto/ gives
set -euo pipefail
cd "$(dirname "$0")"
bin=$(./venv.sh)/bin
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

export LC_ALL=C
protos=$(cd ../../proto && find harness -name '*.proto' | sort)
# shellcheck disable=SC2086
PATH=$bin:$PATH "$bin/python" -m grpc_tools.protoc -I ../../proto \
	--python_out="$fresh" --grpc_python_out="$fresh" \
	--mypy_out=quiet:"$fresh" --mypy_grpc_out=quiet:"$fresh" $protos

"$bin/python" arrange.py "$fresh"
if [ "${1-}" != --check ]; then
	rm -rf src/harnessmesh/gen
	cp -r "$fresh/gen" src/harnessmesh/gen
	exit
fi
if ! diff -ruN --exclude=__pycache__ src/harnessmesh/gen "$fresh/gen"; then
	echo "clients/python/src/harnessmesh/gen is not what proto/ gives: run make generate and commit the result" >&2
	exit 1
fi
