package chaos

import (
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault.
type Kind string

// Kinds of faults.
const (
	KillRole    Kind = "kill a role"             // SIGKILL; a supervisor starts it again
	RestartRole Kind = "restart a role"          // SIGTERM, as a rollout does
	HangRole    Kind = "hang a role"             // SIGSTOP for a time
	KillAll     Kind = "kill all roles"          // SIGKILL for each, immediately
	KillBus     Kind = "kill the bus"            // SIGKILL, and a start after a time
	HangBus     Kind = "hang the bus"            // SIGSTOP until each role reports it
	FillDisk    Kind = "fill the disk"           // of the bus, until each role reports it
	CutTail     Kind = "cut the tail of the bus" // killed, and started without its newest records
)

// weights are how often each kind comes, relative to the others.
var weights = []struct {
	kind   Kind
	weight int
}{
	{KillRole, 8}, {RestartRole, 4}, {HangRole, 4}, {KillAll, 1}, {KillBus, 2}, {HangBus, 1}, {FillDisk, 1}, {CutTail, 1},
}

// Fault is one fault of a plan.
type Fault struct {
	Kind Kind
	// After is the time since the end of the fault before it.
	After time.Duration
	// Role is the role of KillRole, RestartRole and HangRole.
	Role string
	// For is how long HangRole and KillBus last.
	For time.Duration
	// Records is how many records CutTail removes at most.
	Records int
}

// Plan returns faults without end, the same for each seed. A fault lasts for up to twice the
// takeover time.
func Plan(seed uint64, roles []string, takeover time.Duration) func() Fault {
	random := rand.New(rand.NewPCG(seed, 11))
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	// The first faults are one of each kind, so that a short test has all of them.
	first := random.Perm(len(weights))
	return func() Fault {
		f := Fault{After: time.Duration(200+random.IntN(2500)) * time.Millisecond, For: time.Duration(random.Int64N(int64(2 * takeover))), Role: roles[random.IntN(len(roles))], Records: 1 + random.IntN(1<<random.IntN(6))}
		if len(first) > 0 {
			f.Kind, first = weights[first[0]].kind, first[1:]
			return f
		}
		at := random.IntN(total)
		for _, w := range weights {
			if at -= w.weight; at < 0 {
				f.Kind = w.kind
				break
			}
		}
		return f
	}
}
