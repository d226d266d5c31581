// Package mesh measures the mesh as it is deployed: NATS servers and a process
// for each role, on one machine.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench/mesh          # what CI runs
//	go test -run '^$' -bench Throughput -benchtime 3x ./bench/mesh -full -measure 5s -timeout 1h
//
// Throughput stands beside a floor, measured in the same minute on the same
// NATS processes: the same records of as many runs, handed on by executors that
// only take a step, append and acknowledge, all in one process. Turns are
// counted by the commit times in the logs. Where the processor time went, by
// role, is printed beside both.
//
// Takeover and interrupt are times that people wait. They are measured from the
// moment of the signal or of the call to what can be seen of it: the claim of
// the other worker in the log, the event at the client.
package mesh
