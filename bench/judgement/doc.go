// Package judgement measures the cost of the loop's judgement per turn: work items,
// just-in-time rules, the contract, loops and stalls, all of them on and large, compared with
// the same turn with all of it switched off, in the same run of the benchmark.
//
// Only CPU is counted: the decisions of repair, turn and stop decision, and putting
// their records into bytes and back, as executors do it. Looking at files, commands
// and hooks costs what they cost.
package judgement
