#!/usr/bin/env bash
# Lints protobuf and Go: each linter runs, whatever the one before it found.
set -euo pipefail
cd "$(dirname "$0")/.."
buf=$(tools/install.sh tools)/buf
golangci=$(tools/install.sh tools/lint)/golangci-lint
export GOLANGCI_LINT_CACHE=$PWD/.cache/golangci-lint

failed=0
"$buf" format --diff --exit-code || failed=1
"$buf" lint || failed=1
"$golangci" run ./... || failed=1
# The Go of tools/ is a module of its own.
(cd tools && "$golangci" run --config ../.golangci.yml ./...) || failed=1
exit $failed
