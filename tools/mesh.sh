#!/usr/bin/env bash
# Builds the programs of the Procfile and runs the mesh on this machine: a NATS
# server and a process per role. Ctrl-C stops it. What it stores stays in
# .cache/mesh/data, with the password of NATS in nats.creds.
#
#   tools/mesh.sh            the Procfile of the repository
#   tools/mesh.sh PROCFILE   another one, without building anything
#
# A Procfile has a line "NAME: COMMAND" for each process. Each line that a process
# prints is prefixed with its name. A process that exits with 0 has finished. One
# that exits otherwise is restarted after a second.
#
# The first Ctrl-C stops the processes with SIGTERM: the first one in the file,
# which the others need, when all the others have ended. What still runs after 15
# seconds is killed, and so is all of it on a second Ctrl-C; the exit code is then 1.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=.cache/mesh
procfile=${1-Procfile}

require_free_ports() {
	local port
	for port in 4222 7447; do
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "mesh: port $port of 127.0.0.1 is in use by another mesh, NATS server or gateway; stop it first" >&2
			exit 1
		fi
	done
}

# make_credentials makes the password of NATS, once: a file for the processes, and the
# server's configuration. Only this user can read them.
make_credentials() {
	if [ ! -s "$dir/data/nats.creds" ]; then
		(
			umask 077
			password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
			printf 'mesh:%s\n' "$password" >"$dir/data/nats.creds.new"
			mv "$dir/data/nats.creds.new" "$dir/data/nats.creds"
		)
	fi
	(
		umask 077
		password=$(cut -d: -f2- "$dir/data/nats.creds")
		rm -f "$dir/data/nats.conf"
		printf 'include "../../../deploy/local/nats.conf"\nauthorization { user: mesh, password: "%s" }\n' "$password" >"$dir/data/nats.conf"
	)
}

# supervise NAME COMMAND runs the command until it exits with 0 or is stopped.
supervise() {
	local name=$1 command=$2 stopping='' status
	exec > >(trap '' TERM && exec sed -u "s/^/$name | /") 2>&1
	trap 'stopping=yes' TERM
	while :; do
		bash -c "$command" &
		echo "started process $!"
		[ -z "$stopping" ] || kill -TERM $! # the signal came before the process
		status=0
		wait $! || status=$?
		# A signal ends wait early. Asking first whether the process still runs matters:
		# bash may wait forever for one that ended during the signal.
		while kill -0 $! 2>/dev/null; do
			status=0
			wait $! || status=$?
		done
		if [ -n "$stopping" ]; then
			echo "stopped, exit code $status"
			return
		fi
		echo "exit code $status"
		[ "$status" -ne 0 ] || return 0
		sleep 1
	done
}

groups=() # the process groups, in the order of the Procfile
failed=0

# alive reports whether a process of the groups runs.
alive() {
	local group
	for group; do
		if kill -0 -- "-$group" 2>/dev/null; then return 0; fi
	done
	return 1
}

send() {
	local signal=$1 group
	shift
	for group; do kill -"$signal" -- "-$group" 2>/dev/null || true; done
}

# end GROUP... stops the groups and waits until no process of theirs is left.
end() {
	local deadline=$((SECONDS + 15))
	send TERM "$@"
	while alive "$@"; do
		if [ $SECONDS -ge $deadline ]; then
			failed=1
			send KILL "$@"
		fi
		sleep 0.1
	done
}

stop() {
	trap 'failed=1; send KILL "${groups[@]}"' INT TERM HUP
	[ ${#groups[@]} -lt 2 ] || end "${groups[@]:1}"
	[ ${#groups[@]} -lt 1 ] || end "${groups[0]}"
	exit $failed
}

if [ $# -eq 0 ]; then
	require_free_ports
	mkdir -p "$dir/data" "$dir/scripts"
	cp examples/script.yaml "$dir/scripts/notes.yaml"
	make_credentials
	tools/build.sh "$dir/harness"
	GOFLAGS="-trimpath ${GOFLAGS-}" CGO_ENABLED=0 go build -o "$dir/nats-server" github.com/nats-io/nats-server/v2
	require_free_ports # still
	cat <<END
a run      mkdir -p $dir/work && $dir/harness run --server 127.0.0.1:7447 --workspace $dir/work --model script:$dir/scripts/notes.yaml --yolo "Write the notes."
who is up  $dir/harness doctor --nats-creds $dir/data/nats.creds
a crash    kill -9 the processes of both turn workers during a run; Ctrl-C stops the mesh
END
fi

set -m # each process in its own group, so that Ctrl-C reaches this script only
trap stop INT TERM HUP
while IFS= read -r line <&3; do
	if [[ $line =~ ^([A-Za-z0-9_-]+):[[:space:]]*(.+)$ ]]; then
		supervise "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" </dev/null 3<&- &
		groups+=($!)
	elif [[ $line =~ ^[[:space:]]*[^#[:space:]] ]]; then
		echo "mesh: $procfile: expected NAME: COMMAND, not $line" >&2
		failed=1
		stop
	fi
done 3<"$procfile"
[ ${#groups[@]} -gt 0 ] || { echo "mesh: $procfile has no processes" >&2; exit 1; }
while alive "${groups[@]}"; do
	wait -n || sleep 0.1
done
