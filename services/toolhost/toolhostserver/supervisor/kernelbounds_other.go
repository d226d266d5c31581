//go:build !linux

package supervisor

// KernelBounds names what bounds all processes of a command together, and their memory.
type KernelBounds struct{ Processes, Memory string }

// FindKernelBounds returns that the kernel bounds nothing.
func FindKernelBounds(bool) KernelBounds {
	return KernelBounds{Processes: "not bounded by the kernel", Memory: "not bounded by the kernel"}
}
