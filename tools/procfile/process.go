package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Pauses before a process is started again, and the age at which it counts as
// one that works.
const (
	shortPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
	settled    = 10 * time.Second
)

// nextPause is the pause after a life of so long, behind a pause of last; 0 means
// that there was none.
func nextPause(last, lived time.Duration) time.Duration {
	if last == 0 || lived >= settled {
		return shortPause
	}
	return min(2*last, longPause)
}

// A process is an entry and its newest life.
//
//	due ──start──▶ alive ──0──▶ over
//	 ▲               └──else──▶ due again, or over when everything stops
//	 └──────────────────────────┘
type process struct {
	entry
	label
	*life               // nil while it is due, and when it is over
	due   time.Time     // when it is to be started
	lives int           // so far
	pause time.Duration // the last one
	over  bool
}

// A life is one process group, from its start until nothing of it is left.
type life struct {
	pid     int // of the leader, and of the group
	began   time.Time
	ended   time.Time // of the leader; zero while it lives
	status  syscall.WaitStatus
	streams int  // that are still read
	told    bool // that it has ended
	killed  bool
}

// start starts a process, whose streams are read into its label. drained is sent
// the life at the end of each of them, unless over is closed.
func (p *process) start(drained chan<- *life, over <-chan struct{}, into *readers) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	files := []*os.File{null}
	var streams []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(streams)
			return err
		}
		defer func() { _ = w.Close() }()
		files, streams = append(files, w), append(streams, r)
	}
	started, err := os.StartProcess("/bin/sh", []string{"sh", "-c", p.command}, &os.ProcAttr{Files: files, Sys: attributes()})
	if err != nil {
		closeAll(streams)
		return err
	}
	l := &life{pid: started.Pid, began: time.Now(), streams: len(streams)}
	_ = started.Release() // the runner waits for all children at once
	p.life, p.lives = l, p.lives+1
	if p.lives == 1 {
		p.note("started, pid %d: %s", l.pid, p.command)
	} else {
		p.note("started again, pid %d", l.pid)
	}
	for _, s := range streams {
		into.read(s, func() {
			p.copyLines(s)
			select {
			case drained <- l:
			case <-over:
			}
		})
	}
	return nil
}

// signal sends a signal to all of the group and says whether there is any of it.
func (l *life) signal(s syscall.Signal) bool { return syscall.Kill(-l.pid, s) != syscall.ESRCH }

// present says whether anything of the group is left.
func (l *life) present() bool { return l.signal(0) }

// how says how the leader has ended.
func (l *life) how() string {
	if l.status.Signaled() {
		return fmt.Sprintf("signal %d (%s)", l.status.Signal(), l.status.Signal())
	}
	return fmt.Sprintf("exit code %d", l.status.ExitStatus())
}

// readers are the goroutines that read streams.
type readers struct {
	running sync.WaitGroup

	mu   sync.Mutex
	open map[*os.File]bool
}

// read runs f, which reads s to its end.
func (r *readers) read(s *os.File, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*os.File]bool{}
	}
	r.open[s] = true
	r.running.Go(func() {
		f()
		r.mu.Lock()
		delete(r.open, s)
		r.mu.Unlock()
		_ = s.Close()
	})
}

// stop gives the streams so long to come to their end, and waits.
func (r *readers) stop(patience time.Duration) {
	r.mu.Lock()
	for s := range r.open {
		_ = s.SetReadDeadline(time.Now().Add(patience))
	}
	r.mu.Unlock()
	r.running.Wait()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
