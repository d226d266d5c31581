// Package parked measures the cost of runs that wait for an answer: deployed processes,
// all of them killed with the NATS server and restarted.
//
//	go test -run '^$' -bench Parked -benchtime 1x ./bench/parked                           # what CI runs
//	go test -run '^$' -bench Parked -benchtime 1x ./bench/parked -runs 10000 -rest 90s -collections 6 -timeout 30m
//
//	go test -run '^$' -bench WaitingTrees -benchtime 1x ./bench/parked -parents 1000 -rest 10s -timeout 30m
//
// A parked run must cost the roles nothing: with many of them, the goroutines and the
// memory of every process are those of the same mesh before it had any run, and an
// answer to one run changes that run alone. The cost of a run on disk and in the NATS
// server is reported too.
//
// Both sides are measured after a kill and a restart of everything. The floor is the
// mesh without runs measured a second time, after another restart: the difference of
// two lives of the same process.
//
// WaitingTrees compares parents that wait for 4 sub-agents each, which wait for their user, with as many runs
// that wait for their user, in another mesh.
//
// Memory is measured twice: the process's share of the machine's memory (VmRSS), and
// the bytes of its live objects (Presence.heap_bytes). The second is a small part of
// the first, so the gateway's list of runs is visible in it much sooner.
//
// It reads /proc, so it needs Linux.
package parked
