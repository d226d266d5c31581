//go:build linux && !guards

package supervisor

// Tests of the guards build with the tag guards, and leave one out (guards_left_out.go).
// Otherwise none can be left out.

func without(string) bool { return false }

func withoutCall(uint32) bool { return false }

func withoutMode(uint32) bool { return false }

func withoutGroup(uint32) bool { return false }

func remaining(_ string, rights uint64) uint64 { return rights }
