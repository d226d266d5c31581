// Package turn measures the cost of a turn in the mesh, compared with the floor that
// its own records set: the same number of bare fenced appends of the same
// bytes, in the same sync mode, in the same run of the benchmark.
//
// The mesh side is the shipped binary as people run it: `harness serve` with
// every role, and a run of 1,100 turns with the scripted model, each of which
// reads one of 200 files. Its times are taken from the log that it leaves. What
// the model and the tools take is not counted, nor making the request out of
// the conversation.
package turn
