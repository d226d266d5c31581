package console

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keysTick is how often the keyboard is looked at.
const keysTick = 100 * time.Millisecond

// Keys are the keys that a user types while a run is shown. Without a prompt they are read and
// dropped, so that no shell gets them afterwards; a prompt gets those that are typed after it. The
// terminal is changed only while this process is in its foreground group, and has its modes
// again at a prompt, at Stop, at a quit and while the process is suspended.
type Keys struct {
	in    *os.File
	fd    int
	typed chan struct{}
	stop  chan struct{}
	done  sync.WaitGroup

	mu     sync.Mutex
	asking bool
	// before are the modes of the terminal without the change; nil: it is not changed.
	before *unix.Termios
}

// Keys starts to drop keys; nil unless input, output and diagnostics are one terminal in whose
// foreground this process is. An output to a file is one, too; one to a pipe is not,
// because its reader may read the keyboard.
func (a *Console) Keys() *Keys {
	in, ok := a.In.(*os.File)
	if !ok || !a.Interactive() || piped(a.Out) {
		return nil
	}
	k := &Keys{in: in, fd: int(in.Fd()), typed: make(chan struct{}, 1), stop: make(chan struct{})}
	if !k.foreground() {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTSTP)
	k.drop()
	k.done.Go(func() {
		defer signal.Stop(signals)
		ticker := time.NewTicker(keysTick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				k.drop()
			case s := <-signals:
				k.leave(signals, s)
			case <-k.stop:
				return
			}
		}
	})
	return k
}

// piped reports whether an output is a pipe or a socket.
func piped(out any) bool {
	f, ok := out.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// leave restores the terminal for a signal that ends or suspends the process, and lets it.
func (k *Keys) leave(signals chan os.Signal, s os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restore()
	if s == syscall.SIGTSTP {
		suspend()
		return
	}
	signal.Reset(s)
	_ = unix.Kill(os.Getpid(), s.(syscall.Signal)) //nolint:forcetypeassert // Notify sends no other
	signal.Notify(signals, s)
}

// suspend stops the process as the kernel does at Control-Z, which is not at all where no shell
// could continue it, and returns once it continues. The runtime of Go keeps its handler of
// SIGTSTP after signal.Reset, and ignores the signal there.
func suspend() {
	runtime.LockOSThread() // a signal to the own thread takes effect before the next line
	defer runtime.UnlockOSThread()
	var byDefault, ours action
	if exchange(syscall.SIGTSTP, &byDefault, &ours) == 0 {
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTSTP)
		_ = exchange(syscall.SIGTSTP, &ours, nil)
	}
}

// action has room for the kernel's struct sigaction; zeros are the default action.
type action [64]byte

// exchange sets the action of a signal, and returns the former one.
func exchange(s syscall.Signal, next, before *action) syscall.Errno {
	const maskSize = 8
	//nolint:gosec // as the call wants it
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(before)), maskSize, 0, 0)
	return errno
}

// foreground reports whether this process is in the foreground group of the terminal. Elsewhere,
// reading or changing the terminal would suspend it.
func (k *Keys) foreground() bool {
	group, err := unix.IoctlGetInt(k.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// drop drops the keys that were typed, unless a prompt is open.
func (k *Keys) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking || !k.foreground() {
		return
	}
	now, err := unix.IoctlGetTermios(k.fd, unix.TCGETS)
	if err != nil {
		return
	}
	if now.Lflag&(unix.ICANON|unix.ECHO) != 0 { // at the start, after a prompt, and after the shell had it
		if k.before == nil {
			k.before = new(*now)
		}
		quiet := *now
		quiet.Lflag &^= unix.ICANON | unix.ECHO // signals stay
		quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
		if unix.IoctlSetTermios(k.fd, unix.TCSETS, &quiet) != nil {
			return
		}
	}
	for dropped := make([]byte, 4096); k.ready(); {
		n, err := unix.Read(k.fd, dropped)
		if n <= 0 || err != nil {
			return
		}
		select {
		case k.typed <- struct{}{}:
		default:
		}
	}
}

// ready reports whether a read returns immediately.
func (k *Keys) ready() bool {
	fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}

// restore sets the former modes of the terminal.
func (k *Keys) restore() {
	if k.before == nil || !k.foreground() {
		return
	}
	_ = unix.IoctlSetTermios(k.fd, unix.TCSETS, k.before)
	k.before = nil
}

// Asking reports that a prompt is open, or no longer. Keys that were typed before it are dropped.
func (k *Keys) Asking(asking bool) {
	if k == nil {
		return
	}
	if asking {
		k.drop()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking != asking {
		k.asking = asking
		if asking {
			k.restore()
		}
	}
}

// Typed has a value when keys were dropped.
func (k *Keys) Typed() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.typed
}

// Read reads the keys typed at a prompt. It waits while none is open.
func (k *Keys) Read(p []byte) (int, error) {
	ticker := time.NewTicker(keysTick / 4)
	defer ticker.Stop()
	for {
		if n, read, err := k.line(p); read {
			return n, err
		}
		select {
		case <-ticker.C:
		case <-k.stop:
			return 0, os.ErrClosed
		}
	}
}

// line reads a line, if a prompt is open and one is there.
func (k *Keys) line(p []byte) (n int, read bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	if !k.asking || !k.foreground() {
		return 0, false, nil
	}
	if ready, err := unix.Poll(fds, 0); err != nil || ready == 0 {
		return 0, false, nil
	}
	n, err = k.in.Read(p)
	return n, true, err
}

// Stop drops the keys that wait and restores the terminal.
func (k *Keys) Stop() {
	if k == nil {
		return
	}
	k.drop()
	close(k.stop)
	k.done.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking = true // nothing is changed any more
	k.restore()
}
