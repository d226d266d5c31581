package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
)

// network is the network of a run's commands that have none of the machine: that of its first
// background command. Commands that start while a background command is alive join it, so that
// they reach its servers on the loopback.
type network struct {
	// net is the namespace, owner the user namespace that owns it.
	net, owner *os.File
	// enter is nsenter, with which users other than root join it.
	enter string
}

// networks are those of the runs with background commands, by the key of the run. Many goroutines may
// use them.
type networks struct {
	mu    sync.Mutex
	byRun map[string]*network
}

// errNoNetwork: a command has no separate network that others could join.
var errNoNetwork = errors.New("the command has no separate network")

// openNetwork opens the network of a command that has begun, after a try to join it.
func openNetwork(b process.Begun) (*network, error) {
	if b.PID == 0 || b.Network == 0 {
		return nil, errNoNetwork
	}
	n := &network{}
	var err error
	if n.net, err = os.Open("/proc/" + strconv.Itoa(b.PID) + "/ns/net"); err != nil {
		return nil, err
	}
	if err := n.check(b.Network); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// check opens what joining needs, and tries it. A process that has ended may have another
// network than number: then its id was used again.
func (n *network) check(number uint64) error {
	var its, own unix.Stat_t
	if err := errors.Join(unix.Fstat(int(n.net.Fd()), &its), unix.Stat("/proc/self/ns/net", &own)); err != nil {
		return err
	}
	if its.Ino != number || its.Ino == own.Ino {
		return errNoNetwork
	}
	owner, err := unix.IoctlRetInt(int(n.net.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("owner of the network: %w", err)
	}
	n.owner = os.NewFile(uintptr(owner), "owner")
	if os.Geteuid() == 0 {
		n.enter = "setns"
		return nil
	}
	if n.enter, err = exec.LookPath("nsenter"); err != nil {
		return err
	}
	try := exec.Command(n.enter, "--preserve-credentials", "--user=/proc/self/fd/4", "--net=/proc/self/fd/3", "--", "true")
	try.ExtraFiles = []*os.File{n.net, n.owner}
	return try.Run()
}

func (n *network) close() {
	if n != nil {
		_ = n.net.Close()
		_ = n.owner.Close() // returns an error if it is nil
	}
}

// share makes the network of a command that has begun that of its run, unless the run has one.
func (n *networks) share(run string, b process.Begun) error {
	opened, err := openNetwork(b)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.byRun == nil {
		n.byRun = make(map[string]*network)
	}
	if n.byRun[run] == nil {
		n.byRun[run], opened = opened, nil
	}
	n.mu.Unlock()
	opened.close()
	return nil
}

// unshare forgets the network of a run.
func (n *networks) unshare(run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byRun[run].close()
	delete(n.byRun, run)
}

// of returns a copy of the network of a run, nil if it has none.
func (n *networks) of(run string) *network {
	n.mu.Lock()
	defer n.mu.Unlock()
	shared := n.byRun[run]
	if shared == nil {
		return nil
	}
	net, err := unix.FcntlInt(shared.net.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	owner, err := unix.FcntlInt(shared.owner.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(net)
		return nil
	}
	return &network{net: os.NewFile(uintptr(net), "net"), owner: os.NewFile(uintptr(owner), "owner"), enter: shared.enter}
}

// unshareNetwork is the argument of bubblewrap for a separate network.
const unshareNetwork = "--unshare-net"

// joins has a command join the network, if it would have a separate one and no proxy.
func (n *network) joins(c *process.Command, confined confinement.Confinement) {
	plan := confined.Plan
	if n == nil || plan == nil || plan.Listen != "" || !slices.Contains(plan.Bwrap, unshareNetwork) {
		return
	}
	plan.Join = n.enter
	plan.Bwrap = slices.DeleteFunc(slices.Clone(plan.Bwrap), func(a string) bool { return a == unshareNetwork })
	if uid := os.Geteuid(); uid != 0 { // the owner of the network has other ids
		plan.Bwrap = append(plan.Bwrap, "--uid", strconv.Itoa(uid), "--gid", strconv.Itoa(os.Getegid()))
	}
	c.Join = []*os.File{n.net, n.owner}
}
