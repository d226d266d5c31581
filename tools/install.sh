#!/usr/bin/env bash
# Builds the tools that a module pins and prints the folder that holds them.
#
#   tools/install.sh tools         buf, protoc-gen-go, protoc-gen-go-grpc
#   tools/install.sh tools/lint    golangci-lint
#
# The folder is in the user's cache, so that all checkouts share it. Its name is a hash of the
# module's contents and the Go version: a second call costs nothing and a changed pin causes a new build.
set -euo pipefail
module=${1:?usage: tools/install.sh MODULE}
cd "$(dirname "$0")/.."

key=$({ cat "$module/go.mod" "$module/go.sum"; go env GOVERSION GOHOSTOS GOHOSTARCH; } | git hash-object --stdin)
bin=${XDG_CACHE_HOME:-$HOME/.cache}/harnessmesh/bin/$(basename "$module")-${key:0:12}
if [ ! -e "$bin/.complete" ]; then
	echo "building the tools of $module/go.mod (once, about two minutes on two cores)" >&2
	mkdir -p "$bin"
	GOBIN=$bin GOOS='' GOARCH='' CGO_ENABLED=0 go -C "$module" install -trimpath -ldflags='-s -w' tool >&2
	touch "$bin/.complete"
fi
echo "$bin"
