#!/usr/bin/env bash
# Runs the mesh of the Procfile on this machine: a NATS server and a process per
# role. Ctrl-C stops it. What it stores stays in .cache/mesh/data.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=.cache/mesh

free() {
	local port
	for port in 4222 7447; do
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "mesh: port $port of 127.0.0.1 is taken: is another mesh, NATS server or gateway running? Stop it first." >&2
			exit 1
		fi
	done
}

free
mkdir -p "$dir/data"
export CGO_ENABLED=0
go build -o "$dir/harness" ./cmd/harness
go build -o "$dir/nats-server" github.com/nats-io/nats-server/v2
go -C tools build -o "../$dir/procfile" ./procfile
free # still

cat <<END
a run      mkdir -p $dir/work && $dir/harness run --server 127.0.0.1:7447 --workspace $dir/work --model script:examples/script.yaml --yolo "Write the notes."
who is up  $dir/harness doctor
a crash    kill -9 the PIDs of both turn workers while a run is at work; Ctrl-C stops the mesh
END
exec "$dir/procfile" Procfile
