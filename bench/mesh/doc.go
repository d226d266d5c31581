// Package mesh measures a deployed mesh: NATS servers and a process for each role, on
// one machine.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench/mesh          # what CI runs
//	go test -run '^$' -bench Throughput -benchtime 3x ./bench/mesh -full -measure 5s -timeout 1h
//
// Throughput is compared with a floor, measured in the same minute on the same NATS
// processes: the same records of as many runs, passed on by executors that only receive
// a step, append and acknowledge, all in one process. Turns are counted by the commit
// times in the logs. The processor time by role is printed with both.
//
// Takeover and interrupt are times that people wait. They are measured from the signal
// or the call to its visible effect: the claim of the other worker in the log, the
// event at the client.
package mesh
