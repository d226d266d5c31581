//go:build !linux

package supervisor

// Held names what bounds all processes of a command together, and their memory.
type Held struct{ Processes, Memory string }

// HeldBy returns that the kernel bounds nothing.
func HeldBy(bool) Held {
	return Held{Processes: "not bounded by the kernel", Memory: "not bounded by the kernel"}
}
