package chaos

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// injector does faults to a mesh.
type injector struct {
	t     *testing.T
	m     *meshtest.Mesh
	disk  *disktest.Disk
	names []string
	// removed counts the records that the bus has lost.
	removed int
	count   map[Kind]int
}

// inject does a fault and returns when it is over.
func (i *injector) inject(f Fault) {
	i.t.Helper()
	<-time.After(f.After)
	i.count[f.Kind]++
	switch f.Kind {
	case KillRole:
		i.m.Process(f.Role).Signal(syscall.SIGKILL)
	case RestartRole:
		i.m.Process(f.Role).Signal(syscall.SIGTERM)
	case HangRole:
		p := i.m.Process(f.Role)
		p.Signal(syscall.SIGSTOP)
		<-time.After(f.For)
		p.Signal(syscall.SIGCONT)
	case KillAll:
		for _, name := range i.names {
			i.m.Process(name).Signal(syscall.SIGKILL)
		}
	case KillBus:
		i.m.Bus.Kill(0)
		<-time.After(f.For)
		i.restartBus()
	case HangBus:
		before := i.waiting()
		i.m.Bus.Signal(0, syscall.SIGSTOP)
		i.reported("the bus hangs", before, i.names...)
		i.m.Bus.Signal(0, syscall.SIGCONT)
	case FillDisk:
		before := i.waiting()
		i.disk.Fill()
		i.reported("the disk is full", before, "turn", "turn-2") // the others store nothing for long times
		i.disk.Free()
		i.m.Bus.Kill(0) // it stores nothing before a restart, which the reports name
		i.restartBus()
	case CutTail:
		i.m.Bus.Kill(0)
		n, err := storetest.CutNewest(i.disk.Dir, "RUNS_0", f.Records)
		if err != nil {
			i.t.Fatal(err)
		}
		i.removed += n
		i.restartBus()
	}
}

func (i *injector) restartBus() {
	i.m.Bus.Restart(0)
	i.m.Bus.AwaitReady(0)
}

// waiting waits until all processes are ready, and returns how often each has reported since its
// start that it cannot work.
func (i *injector) waiting() map[string]int {
	i.t.Helper()
	all := map[string]int{}
	for _, name := range i.names {
		i.m.AwaitAlive(name)
		waittest.Eventually(i.t, name+" is ready", func() bool {
			text := i.m.Process(name).Stderr()
			return strings.LastIndex(text, "ready role=") > strings.LastIndex(text, "waiting role=")
		})
		all[name] = i.reports(name)
	}
	return all
}

func (i *injector) reports(name string) int {
	return strings.Count(i.m.Process(name).Stderr(), "waiting role=")
}

// reported waits until each process has reported that it cannot work.
func (i *injector) reported(what string, before map[string]int, names ...string) {
	i.t.Helper()
	for _, name := range names {
		waittest.Eventually(i.t, name+" reports that "+what, func() bool { return i.reports(name) > before[name] })
	}
}
