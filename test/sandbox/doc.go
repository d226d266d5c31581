// Package sandbox proves what the sandbox of commands holds.
//
// TestTable has a hostile program try every way out, at each level and for each version of
// Landlock up to the kernel's, as root and as another user, and compares the outcomes with
// docs/sandbox.md:
//
//	go test ./test/sandbox -run Table -update   # measure and write them
//
// TestGuards leaves out one guard at a time and expects a way out to open. TestSystemTable and
// TestSystemGuards try more versions and users.
//
// The host (package host) starts the program (package attack) like a tool host does. It
// prepares what the ways (package wayout) are after, and looks at it afterwards.
package sandbox
