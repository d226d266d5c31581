#!/usr/bin/env bash
# Formats protobuf and Go the way that lint.sh expects.
set -euo pipefail
cd "$(dirname "$0")/.."
"$(tools/install.sh tools)/buf" format -w
"$(tools/install.sh tools/lint)/golangci-lint" fmt
