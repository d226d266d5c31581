//go:build failpoint && linux

package failpoint

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enabled reports whether this program has failpoints.
const Enabled = true

// trigger is the action of a point.
type trigger struct {
	signal syscall.Signal
	name   string
	at     int64
	hits   atomic.Int64
}

var points = parse(os.Getenv(Variable))

var actions = map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}

// parse ends the program if the list is invalid: a test without its failpoint would
// prove nothing.
func parse(list string) map[string]*trigger {
	all := map[string]*trigger{}
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		name, what, _ := strings.Cut(item, "=")
		role, point, _ := strings.Cut(name, ".")
		action, count, counted := strings.Cut(what, "@")
		a := &trigger{name: action, at: 1}
		var ok bool
		if a.signal, ok = actions[action]; !ok || !Known(role, point) {
			fail(item)
		}
		if counted {
			n, err := strconv.ParseInt(count, 10, 64)
			if err != nil || n < 1 {
				fail(item)
			}
			a.at = n
		}
		all[name] = a
	}
	return all
}

func fail(item string) {
	fmt.Fprintf(os.Stderr, "%s: %q: want ROLE.POINT=kill|stop[@N] with a point of that role\n", Variable, item)
	os.Exit(1)
}

// Hit does the action of a role's point.
func Hit(role, point string) {
	if len(points) == 0 {
		return
	}
	a := points[role+"."+point]
	if a == nil || a.hits.Add(1) != a.at {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s.%s %s\n", role, point, a.name)
	// The signal is for this thread, which does not return before the signal arrives: one
	// for the process can arrive at another thread while this one continues.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), a.signal)
}
