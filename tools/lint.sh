#!/usr/bin/env bash
# Lints protobuf, Go, the language of all texts, the files at the root, the waits of tests,
# the writers of the state of a run and what only tests use. Each linter runs, also after one that failed.
set -euo pipefail
cd "$(dirname "$0")/.."
buf=$(tools/install.sh tools)/buf
golangci=$(tools/install.sh tools/lint)/golangci-lint
root=$PWD
export GOLANGCI_LINT_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/harnessmesh/golangci-lint

failed=0
"$buf" format --diff --exit-code || failed=1
"$buf" lint || failed=1
tools/root.sh || failed=1
go -C tools run ./language check || failed=1
go -C tools run ./waits || failed=1
go -C tools run ./owners || failed=1
go -C tools run ./testonly || failed=1
"$golangci" run ./... || failed=1
# Separate modules, so that the product does not depend on what they need.
for module in tools deploy/observe deploy/k8s/verify; do
	(cd "$module" && "$golangci" run --config "$root/.golangci.yml" ./...) || failed=1
done
exit $failed
