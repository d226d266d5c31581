// Package context measures what compaction does to long runs: transcripts of coding and
// research with planted facts, steering and parallel calls, of 200 to 2,000 turns, in
// windows of 16,000 to 200,000 tokens.
//
// Each turn is decided and rendered by the code that the mesh runs: the decision of
// compaction, the view, the contents as they are sent, and exact counts. Only the log and
// the model are simulated: a summarizer that finds the planted facts in what it is sent, and
// a provider that reports exact numbers.
//
// Another model thinks: a strict server binds its thinking to everything before it, so that a
// pass invalidates all of it.
//
// The tests check each request: it fits the window, what was promised is in it or named by a
// reference in it, and no run ends for want of room. The benchmarks print how much of each
// request the provider has cached, and what its input costs compared with the same ladder
// that frees 10 % of the window at a time.
package context
