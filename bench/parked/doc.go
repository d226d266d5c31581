// Package parked measures what runs cost that wait for someone: processes as they
// are deployed, all of them killed with the NATS server and started again.
//
//	go test -run '^$' -bench Parked -benchtime 1x ./bench/parked                           # what CI runs
//	go test -run '^$' -bench Parked -benchtime 1x ./bench/parked -runs 10000 -rest 90s -collections 6 -timeout 30m
//
// The claim is that a parked run costs the roles nothing: with many of them, the
// goroutines and the memory of every process are those of the same mesh before it
// had any run, and an answer to one run moves that run alone. What a run costs on
// disk and in the NATS server is stated beside it.
//
// Both sides are measured after a kill and a restart of everything. The floor is
// the mesh without runs measured a second time, after another restart: what two
// lives of the same process differ by anyhow.
//
// Memory is taken twice: what the process has of the machine (VmRSS), and the
// bytes of its live objects (Presence.heap_bytes). The second is a small part of
// the first, so the list of runs that a gateway keeps shows in it much sooner.
//
// It reads /proc, so it needs Linux.
package parked
