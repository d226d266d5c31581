// Package sim runs executors, services and clients in a simulated world. One number,
// the seed, decides everything that is otherwise left to chance: which pending
// interaction takes place next, its result, when processes die, how long a model
// takes. The same seed gives the same schedule, so a failure can be repeated.
//
// # How
//
// The code under test is the unchanged production code. It runs in a bubble of
// testing/synctest, where time is simulated. Every interaction of a process with the
// world goes through a handle of that process (Process.Log, Process.ToolHosts,
// Process.Model), which blocks the calling goroutine until the scheduler resumes it.
// The scheduler waits until every goroutine is blocked. It lists the pending interactions
// in an order that does not depend on the order of goroutines, draws one and its fate,
// carries it out, checks the invariants, and repeats. If nothing is pending it lets time
// pass.
//
// # Rules for the code under test
//
//   - It reaches the world only through the handles.
//   - It does not hold a mutex during an interaction. A goroutine that waits for a
//     mutex does not count as blocked, so the simulation would hang.
//   - It takes time from package time, and ends with its context.
//   - It leaves nothing to chance that is visible outside: the order of a map, or a
//     select with two ready cases.
//
// # The model
//
// The bus is a stream with durable consumers as JetStream provides them, on one
// server or on three. Config and Rates list its faults. Stored records are encoded
// and decoded, so a record that cannot be stored is refused here too.
// docs/simulator.md lists its limits.
//
// # Use
//
// Run builds a world, calls a function that adds processes and clients, and simulates
// it until all runs are parked or ended. It fails the test with a trace if an
// invariant does not hold. WithLog gives a test a run log on a bus without faults.
package sim
