// Package startup measures the size of the program and what a start of it costs.
//
//	go test -run '^$' -bench . -benchtime 40x ./bench/startup     # figures
//	go test -run 'Program|Idle' ./bench/startup                 # guards
//
// The program is built as a release is: CGO_ENABLED=0, -trimpath, -ldflags '-s -w'.
//
// CPU is the user and system time of a process that ends by itself (wait4), and
// rss its peak of resident memory. In one more start a tracer (PTRACE_EVENT_EXIT)
// reads at the exit what of the memory is anonymous: heap, stacks and written data.
// The rest are pages of the program's file, which all of its processes share. The
// floor is a Go program that prints one line, built in the same way and started in
// turns with the program.
//
// BenchmarkFirstRequest measures harness run until its first request to a model, with and
// without a background process, and the memory of that process while it is idle.
//
// Times vary with the load of the machine: compare ratios. The benchmark reports
// the least CPU of all starts as well as the median, because other processes only
// ever add to it.
//
// It needs Linux.
package startup
