// Package tree measures the cost of sub-agents: deployed processes, one for each role, and
// one NATS server with a sync interval.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench/tree  # what CI runs
//	go test -run '^$' -bench . -benchtime 20x -timeout 30m ./bench/tree
//
// Delegation compares a parent with 8 children of 3 turns each with 9 runs of the same turns
// that a client starts. CPU is the user and system time of all roles and of the NATS server,
// from /proc in steps of 10 ms, so it needs Linux and is summed over many rounds. Bytes are
// those of the stream that has the logs.
//
// InterruptOfATree compares the interrupt of a root with 8 children and 16 grandchildren, each
// of which runs a command, with that of one run whose command has 25 processes. A run has one
// command in the foreground, and at most 4 in the background, so one command starts the 25.
//
// The sides take turns, so that a busy machine slows both.
package tree
