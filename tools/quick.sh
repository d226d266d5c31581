#!/usr/bin/env bash
# Lists the packages of make test-short: those with tests that can start neither a NATS server nor a
# built program, because their test binary does not link what does, and the transcripts.
set -euo pipefail
cd "$(dirname "$0")/.."
module=github.com/harnessmesh/harnessmesh
starts="github.com/nats-io/nats-server/v2/server|$module/test/kit/program"
{
	go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}} .{{end}}' "$@" |
		grep -E '^[^ ]+\.test ' | grep -vE " ($starts) " | sed 's/\.test .*//'
	echo "$module/test/transcripts"
} | sort -ru
