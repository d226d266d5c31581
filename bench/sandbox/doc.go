// Package sandbox measures the overhead of the sandbox for commands of a tool host.
//
//	go test -run '^$' -bench . -benchtime 40x ./bench/sandbox
//
// Each scenario runs the same command without a sandbox (off), at the level kernel and at the
// level full, in turns, and compares the medians:
//
//   - True is the command true: what a start costs. kernel/off has a floor of 1.2, and
//     full-off-ms one of 25.
//   - Compile compiles packages of this project, with those below them in the cache. At full the cache is the same one with changes on top. full/off has a floor of 1.05.
//
// Times vary with the load of the machine: compare ratios. A level that this machine has not got
// is left out.
//
// It needs Linux.
package sandbox
