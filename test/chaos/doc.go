// Package chaos throws random faults of all kinds at a mesh of real processes while clients
// start runs, send messages and watch. A seed determines the faults.
//
//	go test ./test/chaos                                  # two minutes; CI runs one
//	go test ./test/chaos -length 30m -timeout 1h -seed 7  # what make soak runs, with another seed
//
// At the end: no run that was accepted is lost, no effect happened twice, the logs have no gap,
// every watcher received what is stored, no run waited for a worker for more than three takeover times
// after the last fault, and each process that could not work reported why.
package chaos
