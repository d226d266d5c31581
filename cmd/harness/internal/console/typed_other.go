//go:build !linux

package console

// dropTyped drops what was typed at a terminal and not read yet, where that is possible.
func dropTyped(any) {}
