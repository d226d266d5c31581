// Package memory measures what deployed processes need in memory for the conversations
// that they work on, compared with the bytes of these conversations.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench/memory                      # what CI runs
//	go test -run '^$' -bench . -benchtime 1x ./bench/memory -runs 64 -timeout 20m
//
// Each process has the memory limit that the manifests give its role. The figures are the
// peak of its share of the machine's memory (VmHWM), the bytes that are held at the end of
// the work, and their ratio. A process whose peak exceeds the limit would have been killed
// in a cluster, so the benchmark fails.
//
// It reads /proc, so it needs Linux.
package memory
