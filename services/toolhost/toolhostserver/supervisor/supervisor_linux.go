package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leaveGrace is how long processes may run after the shell has ended, such as the last
// ones of a pipeline, which are still writing.
const leaveGrace = 100 * time.Millisecond

// init supervises a command if the process was started for it, and does not return then.
func init() {
	announced := len(os.Args) == 3 && os.Args[2] == Announced
	if len(os.Args) != 2 && !announced || os.Args[0] != Name {
		return
	}
	report := os.NewFile(reportFD, "report")
	if err := Send(report, supervise(os.Args[1], report, announced)); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func supervise(line string, report *os.File, announced bool) Exit {
	// The command inherits neither these nor other descriptors of the host.
	for fd := range ownerFD + 1 - lifelineFD {
		unix.CloseOnExec(lifelineFD + fd)
	}
	if !without("descriptors") {
		_ = unix.CloseRange(listenerFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Exit{Error: "the system cannot adopt orphans: " + err.Error()}
	}
	plan, err := readPlan()
	if err != nil {
		return Exit{Unconfined: true, Error: "the plan cannot be read: " + err.Error()}
	}
	// Not ignored, which the shell would inherit, but without effect here.
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	gone := make(chan struct{})
	go func() {
		awaitEOF(lifelineFD)
		close(gone)
	}()

	if atEOF(lifelineFD) {
		return Exit{Stopped: true} // the host died before this process could be found
	}
	begin, err := openAnnouncement(announced)
	if err != nil {
		return Exit{Error: err.Error()}
	}
	set := &setup{plan: plan, begin: begin}
	pid, err := startShell(line, set)
	set.counted(pid)
	defer set.group.remove()
	if err != nil {
		return Exit{Unconfined: set.failed, Error: err.Error()}
	}
	set.bound(pid)
	begin.send(report, set)
	exit := watch(pid, children, gone, plan.bounds().exceeded(set.group))
	if why := set.group.exceeded(plan.bounds()); why != "" && exit.Code != 0 && !exit.Stopped {
		exit = Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL), Exceeded: why}
	}
	left := set.killDescendants(!exit.Stopped && exit.Exceeded == "")
	begin.wait()
	if exit.Stopped || exit.Exceeded != "" {
		return exit
	}
	exit.Left = namesOf(left, len(set.files) > 0)
	if !set.entered() {
		return Exit{Unconfined: true, Error: "bubblewrap could not make the namespaces and file systems"}
	}
	return exit
}

// readPlan reads the confinement of the command; nil means none.
func readPlan() (*Plan, error) {
	file := os.NewFile(planFD, "plan")
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	plan := &Plan{}
	return plan, json.Unmarshal(data, plan)
}

// bounds returns those of a plan, nil for none.
func (p *Plan) bounds() *Bounds {
	if p == nil {
		return nil
	}
	return p.Bounds
}

// startShell starts the shell from a thread that is confined as the plan says. What a
// thread cannot do, its children cannot do; the other threads of the supervisor can. The
// shell dies with its thread (Pdeathsig), so the thread stays until the process ends.
func startShell(line string, set *setup) (pid int, err error) {
	if set.plan != nil && !without("first for memory") {
		// Where memory runs out, the kernel kills commands before anything else.
		const score = "/proc/self/oom_score_adj"
		before, _ := os.ReadFile(score)
		_ = put(score, "1000")
		defer func() { _ = put(score, strings.TrimSpace(string(before))) }()
	}
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		pid, err = set.fork(line)
		set.group.leave()
		close(started)
		if err == nil {
			select {}
		}
	}()
	<-started
	return pid, err
}

func (s *setup) fork(line string) (int, error) {
	defer s.closeFolders()
	argv, err := s.confine(s.begin.shell(line))
	if err != nil {
		s.failed = true
		return 0, err
	}
	argv = s.entering(argv)
	path, argv, sys, err := s.plan.overlay(argv)
	if err != nil {
		s.failed = true
		return 0, err
	}
	files, err := s.blocked(s.begin.files(s.files))
	if err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: append([]uintptr{0, 1, 2}, s.descriptors(files)...), Sys: sys})
	s.failed = err != nil && len(s.files) > 0
	for _, fd := range s.files {
		_ = unix.Close(int(fd))
	}
	return pid, err
}

// awaitEOF returns when the other end of a pipe is closed.
func awaitEOF(fd int) {
	buffer := make([]byte, 1)
	for {
		n, err := unix.Read(fd, buffer)
		if n == 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// atEOF reports whether the other end of a pipe is already closed.
func atEOF(fd int32) bool {
	for {
		poll := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}

// watch reaps children until the shell has ended and leaveGrace is over. Only this
// goroutine reaps, so a pid that it kills still belongs to its child.
func watch(shell int, children <-chan os.Signal, gone <-chan struct{}, exceeded <-chan string) Exit {
	var exit Exit
	ended := false
	var leave <-chan time.Time
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil { // no children, and so no descendants
				return exit
			}
			if pid == 0 {
				break
			}
			if pid == shell {
				ended = true
				exit.Code = status.ExitStatus()
				if status.Signaled() {
					exit.Signal = int(status.Signal())
					exit.Code = 128 + exit.Signal
				}
				leave = time.After(leaveGrace)
			}
		}
		select {
		case <-children:
		case <-leave:
			return exit
		case why := <-exceeded:
			if ended {
				return exit
			}
			return Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL), Exceeded: why}
		case <-gone:
			// If the shell had ended, the command had: its exit code counts.
			return Exit{Code: exit.Code, Signal: exit.Signal, Stopped: !ended}
		}
	}
}

// killDescendants kills all descendants of this process, reaps them, and returns their
// names by pid, if they are wanted, which reads all of them first.
func (s *setup) killDescendants(named bool) map[int]string {
	killed := make(map[int]string)
	if !reap() {
		return killed
	}
	if named {
		for _, p := range descendants(os.Getpid()) {
			if unix.Kill(p.PID, unix.SIGSTOP) == nil {
				killed[p.PID] = p.Name
			}
		}
	}
	if s.killFirst() {
		reapFor(dyingTogether)
	}
	for round := 0; reap(); round++ {
		if s.group != nil && round < groupRounds {
			s.group.kill()
			reapFor(dying)
			continue
		}
		frozen := Freeze(func() []Process { return descendants(os.Getpid()) })
		for pid, name := range frozen {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = name
		}
		reapFor(dying)
	}
	return killed
}

// killFirst kills the first process of the command's namespace of processes, and with it all in
// the namespace, however many there are and whatever they start. It reports whether it found it.
func (s *setup) killFirst() (killed bool) {
	if s.plan == nil || len(s.plan.Bwrap) == 0 || without("first process") {
		return false
	}
	own, _ := childrenOf(os.Getpid())
	for _, child := range own {
		below, _ := childrenOf(child)
		for _, pid := range append(below, child) {
			if first(pid) {
				killed = unix.Kill(pid, unix.SIGKILL) == nil || killed
			}
		}
	}
	return killed
}

// first reports whether a process is the first of a namespace of processes below this one.
func first(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, ids, _ := strings.Cut(string(text), "\nNSpid:")
	ids, _, _ = strings.Cut(ids, "\n")
	fields := strings.Fields(ids)
	return len(fields) > 1 && fields[len(fields)-1] == "1"
}

// dying is how long the killed may take to die before the process table is read again, which
// takes longer than their death where many processes are alive.
const dying = 20 * time.Millisecond

// dyingTogether is the same for all processes of a namespace, and groupRounds how often those of
// a control group are killed before the process table is read.
const (
	dyingTogether = 300 * time.Millisecond
	groupRounds   = 10
)

// reapFor reaps dead children until none is left, at most for d.
func reapFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && reap(); {
		time.Sleep(time.Millisecond)
	}
}

// bubblewrap is the name of the process that stays with a command in its namespaces.
const bubblewrap = "bwrap"

// namesOf returns the names of processes in order, each with how many there are.
func namesOf(killed map[int]string, wrapped bool) []string {
	counts := make(map[string]int)
	for _, name := range killed {
		if !wrapped || name != bubblewrap {
			counts[name]++
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		text := strings.ToValidUTF8(name, "?")
		if counts[name] > 1 {
			text += fmt.Sprintf(" (%d)", counts[name])
		}
		names = append(names, text)
	}
	return names
}

// reap reaps the dead children and reports whether others are left.
func reap() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.EINTR || err == nil && pid > 0 {
			continue
		}
		return err == nil
	}
}
