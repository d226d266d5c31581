//go:build !linux

package storetest

// InMemory does nothing: only Linux has a folder in memory for every process.
func InMemory() {}
