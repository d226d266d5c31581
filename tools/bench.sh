#!/usr/bin/env bash
# Runs each benchmark of the tree once, in its short form, so that none of them can rot.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(tools/packages.sh Benchmark | cut -d' ' -f1 | sort -u)
if [ -z "$packages" ]; then
	echo "no benchmarks"
	exit 0
fi
# The longest first.
packages=$({ grep -E '/bench/(mesh|memory)$' <<<"$packages"; echo "$packages"; } | awk '!n[$0]++')
# Three at a time, as some wait: no figure counts here. go test alone runs packages with benchmarks one after the other.
xargs -n 1 -P 3 go test -short -timeout 20m -run '^$' -bench . -benchtime 1x -benchmem <<<"$packages"
