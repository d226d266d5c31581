package supervisor

import (
	"os"
	"runtime"
)

// Held names what bounds all processes of a command together, and their memory.
type Held struct{ Processes, Memory string }

// someTasks is a bound to try.
const someTasks = 4_096

// unheld is a bound that the supervisor measures alone.
const unheld = "not bounded by the kernel"

// HeldBy returns what bounds commands on this machine. full is true if they run in bubblewrap.
func HeldBy(full bool) Held {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held := Held{Processes: unheld, Memory: unheld}
	g := openGroup(&Bounds{Tasks: someTasks, MemoryBytes: 1 << 30})
	g.leave()
	defer g.remove()
	p := &Plan{Bounds: &Bounds{Tasks: someTasks}}
	if full {
		p.Bwrap = []string{bubblewrap}
	}
	switch {
	case g != nil:
		held.Processes = "a control group"
		if g.memory {
			held.Memory = "a control group"
		}
	case p.countable():
		held.Processes = "a limit in a namespace of users"
	case os.Geteuid() != 0:
		held.Processes = "a limit for the user, which counts other processes too"
	}
	return held
}
