// Package sim runs executors, services and clients in a simulated world, where one
// number, the seed, decides everything that is otherwise left to chance: which of the
// pending interactions takes place next, what becomes of it, when processes die, how
// long a model thinks. The same seed gives the same schedule, so what a seed finds
// can be looked at again.
//
// # How
//
// The code under test is the production code, unchanged. It runs in a bubble of
// testing/synctest, where time is simulated. Every interaction of a process with the
// world goes through a handle of that process (Process.Log, Process.ToolHosts,
// Process.Model): the handle parks the calling goroutine until the scheduler lets it
// go on. The scheduler waits until every goroutine is blocked, lists what is pending
// in an order that does not depend on which goroutine came first, draws one, draws
// its fate, lets it happen, checks the invariants, and begins anew. When nothing is
// pending it lets time pass.
//
// # What the code under test has to do
//
//   - Reach the world through the handles alone.
//   - Hold no mutex across an interaction: a goroutine that waits for a mutex does
//     not count as blocked, and the world would stand still.
//   - Take time from package time, and end with its context.
//   - Leave nothing to chance that can be seen from outside: the order of a map, or
//     a select of which two cases are ready.
//
// # What is modelled
//
// The bus is a stream with durable consumers as JetStream gives them, on one server
// or on three; see Config and Rates for what goes wrong on it. Stored records are
// encoded and decoded, so what cannot be stored is refused here too.
// docs/simulator.md says what is not modelled.
//
// # Use
//
// Run makes a world, lets a function put processes and clients into it, simulates it
// until everything rests, and fails the test with a trace when an invariant does not
// hold.
package sim
