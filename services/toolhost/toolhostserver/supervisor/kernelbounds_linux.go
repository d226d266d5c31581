package supervisor

import (
	"os"
	"runtime"
)

// KernelBounds names what bounds all processes of a command together, and their memory.
type KernelBounds struct{ Processes, Memory string }

// someTasks is a bound to try.
const someTasks = 4_096

// unheld is a bound that the supervisor measures alone.
const unheld = "not bounded by the kernel"

// FindKernelBounds returns what bounds commands on this machine. full is true if they run in bubblewrap.
func FindKernelBounds(full bool) KernelBounds {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	found := KernelBounds{Processes: unheld, Memory: unheld}
	g := openGroup(&Bounds{Tasks: someTasks, MemoryBytes: 1 << 30})
	g.leave()
	defer g.remove()
	p := &Plan{Bounds: &Bounds{Tasks: someTasks}}
	if full {
		p.Bwrap = []string{bubblewrap}
	}
	switch {
	case g != nil:
		found.Processes = "a control group"
		if g.memory {
			found.Memory = "a control group"
		}
	case p.countable():
		found.Processes = "a limit in a namespace of users"
	case os.Geteuid() != 0:
		found.Processes = "a limit for the user, which counts other processes too"
	}
	return found
}
