package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// margin is by how much the kernel's bound of processes exceeds that of a plan. Between the
// two, a measurement finds that the command has exceeded it.
const margin = 64

// most returns the kernel's bound of processes and threads.
func (b *Bounds) most() uint64 { return uint64(b.Tasks) + margin } //nolint:gosec // from 0

// perNamespace reports whether the kernel counts the processes of a user in each namespace of
// users: since Linux 5.14.
func perNamespace() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 14)
}

// countable reports whether the kernel bounds the processes of a plan's command in its own
// namespace of users. It ignores the limit for root.
func (p *Plan) countable() bool {
	return p.Bounds != nil && p.Bounds.Tasks > 0 && len(p.Bwrap) > 0 && os.Geteuid() != 0 && perNamespace() && !without("processes of a namespace")
}

// count bounds the processes of the user, for what this process starts, by those of the machine
// and the command's. The kernel counts all processes of the user, also outside, so it is wide.
func (s *setup) count() error {
	b := s.plan.Bounds
	if b == nil || b.Tasks == 0 || os.Geteuid() == 0 || without("processes of a user") {
		return nil
	}
	text, err := os.ReadFile("/proc/loadavg") // load, load, load, running/all, last pid
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return nil //nolint:nilerr // there is no such bound then
	}
	_, total, _ := strings.Cut(fields[3], "/")
	all, _ := strconv.ParseUint(total, 10, 64)
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &s.ownTasks); err != nil {
		return fmt.Errorf("limit of processes: %w", err)
	}
	s.tasks = min(all+b.most(), s.ownTasks.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: s.tasks, Max: s.ownTasks.Max}); err != nil {
		return fmt.Errorf("limit of processes: %w", err)
	}
	return nil
}

// counted gives this process, which the command must not keep from working, its limit back, and
// keeps the command from raising its own.
func (s *setup) counted(shell int) {
	if s.tasks == 0 {
		return
	}
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &s.ownTasks)
	if shell > 0 {
		_ = unix.Prlimit(shell, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: s.tasks, Max: s.tasks}, nil)
	}
}

// countIn bounds the processes of a namespace of users by a process in it, which bubblewrap keeps
// from starting anything until then.
func (p *Plan) countIn(pid int) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &now); err != nil {
		return fmt.Errorf("limit of processes: %w", err)
	}
	most := min(p.Bounds.most(), now.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("limit of processes: %w", err)
	}
	return nil
}

// blockFD is the descriptor for which bubblewrap waits before it starts the command.
const blockFD = 10

// blocked returns the descriptors of the first process, with that for which bubblewrap waits.
func (s *setup) blocked(files []uintptr) ([]uintptr, error) {
	if s.plan == nil || !s.plan.countable() {
		return files, nil
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	for len(files) < blockFD-lifelineFD {
		files = append(files[:len(files):len(files)], ^uintptr(0)) // closed
	}
	s.waits, s.release, s.released = ends[0], ends[1], make(chan struct{})
	return append(files, uintptr(ends[0])), nil
}

// bound bounds the processes of a command that waits for it, and has it begin.
func (s *setup) bound(shell int) {
	if s.released == nil {
		return
	}
	_ = unix.Close(s.waits)
	go func() {
		defer close(s.released)
		defer func() { _ = unix.Close(s.release) }()
		s.read()
		if s.made.PID == 0 || s.plan.countIn(s.made.PID) != nil {
			_ = unix.Kill(shell, unix.SIGKILL) // nothing starts less bounded
			return
		}
		_, _ = unix.Write(s.release, []byte{0})
	}()
}
