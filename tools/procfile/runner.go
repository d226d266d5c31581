package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Bounds of the waits for what has ended or was killed.
const (
	lastWords = 100 * time.Millisecond // for what a process wrote before its end
	dying     = 5 * time.Second        // for what was killed
	look      = 20 * time.Millisecond  // between two looks at groups that are to end
	sameKey   = 300 * time.Millisecond // one Ctrl-C may come twice, by way of make or timeout
)

// phase is how far the runner is.
type phase int

const (
	keeping       phase = iota // what ends is started again
	stoppingRest               // all but the first are to end
	stoppingFirst              // the first is to end
	sweeping                   // nothing is to be left
)

// A runner keeps processes running. One goroutine, on one thread, owns it: the
// death of that thread would be the death of the processes (Pdeathsig), and it
// alone waits for children, its own and those that it adopts.
//
// Whatever happens, proceed is called; it looks at everything and does what is
// due.
type runner struct {
	processes []*process
	patience  time.Duration
	drained   chan *life
	over      chan struct{}
	readers   readers

	phase    phase
	asked    time.Time // when it was to stop
	deadline time.Time // of the phase, from stoppingRest on
	hard     bool      // everything was killed
	failed   bool      // not all stopped in order
	orphans  bool      // there are children
}

// run keeps the entries running until all are done, or until a signal stops
// them, and returns the exit code.
func run(entries []entry, out *output, patience time.Duration, signals <-chan os.Signal) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, "procfile:", err)
		return 1
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	defer signal.Stop(ends)

	r := &runner{patience: patience, drained: make(chan *life), over: make(chan struct{})}
	now := time.Now()
	for i, e := range entries {
		r.processes = append(r.processes, &process{entry: e, label: out.label(e.name, i), due: now})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ends:
		case <-timer.C:
		case l := <-r.drained:
			l.streams--
		case s := <-signals:
			r.take(s, time.Now())
		}
		next, over := r.proceed(time.Now())
		if over {
			break
		}
		timer.Reset(time.Until(next))
	}
	close(r.over)
	r.readers.stop(lastWords)
	if r.failed {
		return 1
	}
	return 0
}

// take handles a signal from outside.
func (r *runner) take(s os.Signal, now time.Time) {
	switch {
	case r.phase == keeping:
		r.asked = now
		r.enter(stoppingRest, now)
	case s == syscall.SIGPIPE: // comes with each line
	case now.Sub(r.asked) < sameKey:
	case !r.hard:
		r.hard, r.failed = true, true
		for _, p := range r.processes {
			p.kill("killed")
		}
		r.deadline = now.Add(dying)
	}
}

// enter begins a phase.
func (r *runner) enter(to phase, now time.Time) {
	r.phase, r.deadline = to, now.Add(r.patience)
	switch to {
	case stoppingRest:
		for _, p := range slices.Backward(r.processes[1:]) {
			p.stop()
		}
		if r.processes[0].life == nil {
			r.processes[0].over = true
		}
	case stoppingFirst:
		r.processes[0].stop()
	case sweeping:
		r.deadline = now.Add(dying)
	}
}

// stop asks a process to stop.
func (p *process) stop() {
	if p.life == nil {
		p.over = true
		return
	}
	if p.ended.IsZero() {
		p.note("is asked to stop")
	}
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // one that was stopped hears nothing else
}

// kill kills what is left of a process.
func (p *process) kill(why string) {
	if p.life != nil && !p.killed && p.signal(syscall.SIGKILL) {
		p.killed = true
		p.note("%s", why)
	}
}

// proceed does what is due and says when to look again, or that all is over.
func (r *runner) proceed(now time.Time) (next time.Time, over bool) {
	r.reap(now)
	next = now.Add(time.Hour)
	soon := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, p := range r.processes {
		r.settle(p, now)
		if p.over {
			continue
		}
		if p.life == nil && !p.due.After(now) {
			r.begin(p, now)
		}
		switch {
		case p.life == nil:
			soon(p.due)
		case !p.ended.IsZero():
			soon(now.Add(look))
		}
	}
	if r.phase != keeping {
		soon(now.Add(look))
	}
	if r.phase != keeping && r.phase != sweeping && now.After(r.deadline) {
		r.expire(now)
	}
	rest := !slices.ContainsFunc(r.processes[1:], func(p *process) bool { return !p.over })
	switch {
	case r.phase == stoppingRest && rest:
		r.enter(stoppingFirst, now)
		return now.Add(look), false
	case r.phase != sweeping && rest && r.processes[0].over:
		r.enter(sweeping, now)
		return now, false
	case r.phase == sweeping:
		return now.Add(look), r.sweep(now)
	}
	return next, false
}

// begin starts a process that is due.
func (r *runner) begin(p *process, now time.Time) {
	if err := p.start(r.drained, r.over, &r.readers); err != nil {
		p.pause = nextPause(p.pause, 0)
		p.due = now.Add(p.pause)
		p.note("cannot be started: %v; again in %s", err, p.pause)
	}
}

// reap takes the status of every child that has ended.
func (r *runner) reap(now time.Time) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		r.orphans = err == nil // else there are no children
		if pid <= 0 {
			return
		}
		for _, p := range r.processes {
			if p.life != nil && p.pid == pid && p.ended.IsZero() {
				p.ended, p.status = now, status
			}
		}
	}
}

// settle sees to a process whose leader has ended: says so, when what it wrote
// is out, and decides what follows, when nothing of it is left.
func (r *runner) settle(p *process, now time.Time) {
	l := p.life
	if l == nil || l.ended.IsZero() {
		return
	}
	if r.phase == keeping {
		l.signal(syscall.SIGKILL) // nothing of it stands beside the next
	}
	done := l.status.Exited() && l.status.ExitStatus() == 0
	if !l.told {
		if l.streams > 0 && now.Before(l.ended.Add(lastWords)) {
			return
		}
		l.told = true
		switch {
		case r.phase != keeping:
			p.note("stopped: %s", l.how())
		case done:
			p.note("is done")
		default:
			p.pause = nextPause(p.pause, l.ended.Sub(l.began))
			p.due = l.ended.Add(p.pause)
			p.note("ended: %s; again in %s", l.how(), p.pause)
		}
	}
	if l.present() && (r.phase != keeping || now.Before(l.ended.Add(dying))) {
		return
	}
	p.life = nil
	p.over = done || r.phase != keeping
}

// expire kills what has not stopped in time; what was killed and is still there
// is left to the kernel.
func (r *runner) expire(now time.Time) {
	r.failed = true
	for i, p := range r.processes {
		switch {
		case p.life == nil || i == 0 && r.phase == stoppingRest && !r.hard:
		case p.killed:
			p.note("was killed and is still there, pid %d", p.pid)
			p.life, p.over = nil, true
		default:
			p.kill(fmt.Sprintf("has not stopped in %s: killed", r.patience))
		}
	}
	r.deadline = now.Add(dying)
}

// sweep kills what has left its group, and says that nothing is left.
func (r *runner) sweep(now time.Time) bool {
	if !r.orphans {
		return true
	}
	left := children()
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if now.Before(r.deadline) {
		return false
	}
	fmt.Fprintf(os.Stderr, "procfile: processes that were killed are still there: %v\n", left)
	r.failed = true
	return true
}
