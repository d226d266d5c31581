package supervisor

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// setup is the confinement of a command while it is set up.
type setup struct {
	plan *Plan // nil: none
	// calls is the filter of system calls.
	calls []bpf.RawInstruction
	// files are the descriptors of the command from 3 on, for bubblewrap: the filter, and
	// what it writes its status to. With a listener those of an entry follow. status is the
	// other end of that for the status.
	files  []uintptr
	status *os.File
	// folders are the descriptors of the folders of the plan.
	folders []uintptr
	// begin announces the beginning of the command; nil: nothing does. It reads the first
	// line of the status; written has the rest then.
	begin   *announcement
	written *bufio.Reader
	// group bounds the processes of the command; nil: no control group does.
	group *group
	// tasks is the bound of the user's processes for the command, 0 for none; ownTasks is that of
	// this process.
	tasks    uint64
	ownTasks unix.Rlimit
	// waits and release are the ends of a pipe for which bubblewrap waits until the processes of
	// the command are bounded. released is closed after that, or when it has failed; nil: it does
	// not wait. made is what bubblewrap has made.
	waits, release int
	released       chan struct{}
	made           struct {
		PID     int    `json:"child-pid"`
		Network uint64 `json:"net-namespace"`
	}
	// failed reports that nothing was started because a step failed.
	failed bool
}

// confine restricts this thread as the plan says, and returns the command line with which
// argv starts confined.
func (s *setup) confine(argv []string) ([]string, error) {
	p := s.plan
	if p == nil {
		return argv, nil
	}
	if err := s.openFolders(); err != nil {
		return nil, err
	}
	s.group = openGroup(p.Bounds)
	steps := []func() error{p.join, p.limit, s.count, noNewPrivileges, s.filter, s.landlock, p.capabilities}
	if len(p.Bwrap) > 0 {
		steps = append(steps, s.open)
		if p.Listen != "" {
			argv = append([]string{entryPath, entryName, p.Listen}, argv...)
		}
		command, bwrap := argv, s.withoutMissing(p.Bwrap)
		argv = append(bwrap[:len(bwrap):len(bwrap)], "--seccomp", "3", "--json-status-fd", "4")
		if p.countable() {
			argv = append(argv, "--block-fd", strconv.Itoa(blockFD))
		}
		argv = append(append(argv, "--"), command...)
	} else {
		steps = append(steps, func() error { return install(s.calls) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return argv, nil
}

// filter makes the filter of system calls. What it cannot decide, a listener does, for which this
// thread must not get new rights any more.
func (s *setup) filter() (err error) {
	s.calls, err = s.plan.filter(without("listener") || !listen())
	return err
}

// open opens the files of bubblewrap.
func (s *setup) open() error {
	program, err := filterFile(s.calls)
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	var status [2]int
	if err := unix.Pipe2(status[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	s.status, s.files = os.NewFile(uintptr(status[0]), "status"), []uintptr{uintptr(program), uintptr(status[1])}
	if s.plan.Listen == "" {
		return nil
	}
	entry, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the program of the host: %w", err)
	}
	s.files = append(s.files, uintptr(entry), listenerFD)
	return nil
}

// entered reports whether the command was started. Bubblewrap writes the exit code of a
// command only if it has made everything and started it.
func (s *setup) entered() bool {
	if len(s.files) == 0 {
		return true
	}
	if s.released != nil {
		<-s.released
	}
	var rest io.Reader = s.status
	if s.written != nil {
		rest = s.written
	}
	text, _ := io.ReadAll(io.LimitReader(rest, 1<<16))
	return bytes.Contains(text, []byte(`"exit-code"`))
}

// limit sets the limits of the process, which the command inherits. None is raised above
// its present hard limit.
func (p *Plan) limit() error {
	if without("limits") {
		return nil
	}
	for _, l := range p.Limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.Resource, &now); err != nil {
			return fmt.Errorf("limit %d: %w", l.Resource, err)
		}
		most := min(l.Max, now.Max)
		if err := unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit %d: %w", l.Resource, err)
		}
	}
	return nil
}

// capabilities drops those of this thread, but for the one to use files of others within the
// reach of the command. Bubblewrap needs them all, and drops them itself.
func (p *Plan) capabilities() error {
	if len(p.Bwrap) > 0 || without("capabilities") {
		return nil
	}
	return dropCapabilities(!without("bounding set"))
}

// dropCapabilities drops those of this thread, and of the programs that it becomes if bounding is
// true.
func dropCapabilities(bounding bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if now[0].Permitted|now[1].Permitted == 0 {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c != unix.CAP_DAC_OVERRIDE && bounding {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // without the right to do so there is nothing to gain from the set
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	kept := now[0].Permitted & (1 << unix.CAP_DAC_OVERRIDE)
	next := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	if err := unix.Capset(&header, &next[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

func noNewPrivileges() error {
	if without("no_new_privs") {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}
