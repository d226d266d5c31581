//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/test/sandbox/wayout"
)

// host is what commands are tried against.
type host struct {
	base    string
	machine confinement.Machine
	server  *toolhostserver.Server
	target  wayout.Target
	jobs    int
	closers []func()

	datagrams, abstracts, udp int
}

// newHost prepares everything that the ways are after, below base.
func newHost(base string) (*host, error) {
	h := &host{base: base, target: wayout.Target{
		Outside: filepath.Join(base, "outside"), Readable: filepath.Join(base, "readable"), Home: os.Getenv("HOME"), Data: filepath.Join(base, "data"),
		Host: os.Getpid(), Stream: filepath.Join(base, "outside", "stream"), Datagram: filepath.Join(base, "outside", "datagram"),
		Memory: os.Getpid(), Queue: fmt.Sprintf("harness-%d", os.Getpid()),
	}}
	unix.Umask(0o022)
	for _, folder := range []string{h.target.Outside, h.target.Readable, h.target.Data, h.target.Home} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	// A descriptor that the host forgot to close on exec.
	if err := os.WriteFile(filepath.Join(base, "secret"), []byte(wayout.Secret), 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open(filepath.Join(base, "secret"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 100); err != nil { // above those that supervisors get
		return nil, err
	}
	if err := h.listen(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return h, h.find()
}

// find finds out what this machine can do, as a tool host does.
func (h *host) find() error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		bwrap = ""
	}
	entries, err := os.ReadDir("/etc")
	if err != nil {
		return err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		if names[i] = e.Name(); e.IsDir() {
			names[i] += "/"
		}
	}
	h.machine = confinement.Machine{
		ABI: process.LandlockABI(), Bwrap: bwrap, Overlay: bwrap != "", Root: os.Geteuid() == 0, Etc: names, Home: h.target.Home, Environ: os.Environ(),
		Look: func(path string) (found, folder bool) {
			info, err := os.Stat(path)
			return err == nil, err == nil && info.IsDir()
		},
	}
	h.server, err = toolhostserver.New(toolhostserver.Config{Dir: h.target.Data})
	return err
}

// config is what the command may do that tries a way.
func (h *host) config(w wayout.Way) *harnessv1.SandboxConfig {
	limits := &harnessv1.SandboxLimits{FileBytes: wayout.FileBytes, OpenFiles: wayout.OpenFiles}
	c := &harnessv1.SandboxConfig{Read: []string{h.target.Readable}, Limits: limits}
	if w.Network {
		c.Network = &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}
	}
	if w.Alone {
		limits.Processes, limits.MemoryBytes, limits.TemporaryBytes = wayout.Processes, wayout.MemoryBytes, wayout.TemporaryBytes
	}
	return c
}

func (h *host) close() {
	for _, f := range h.closers {
		f()
	}
}

// listen opens the sockets of the host.
func (h *host) listen() error {
	abstract := fmt.Sprintf("harness-%d", os.Getpid())
	h.target.Abstract, h.target.AbstractDatagram = abstract, abstract+"-datagram"
	var failed []error
	bound := func(family, kind int, at unix.Sockaddr) int {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, at)
		}
		if err == nil && kind == unix.SOCK_STREAM {
			err = unix.Listen(fd, 1<<12)
		}
		if err != nil {
			failed = append(failed, err)
		}
		return fd
	}
	loopback := [4]byte{127, 0, 0, 1}
	h.target.TCP = port(bound(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: loopback}))
	h.udp = bound(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: loopback})
	h.target.UDP = port(h.udp)
	bound(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: h.target.Stream})
	bound(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + h.target.Abstract})
	h.datagrams = bound(unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: h.target.Datagram})
	h.abstracts = bound(unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: "@" + h.target.AbstractDatagram})
	needed := len(failed)
	if fd := bound(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}); len(failed) == needed {
		h.target.TCP6 = port(fd)
	}
	return errors.Join(failed[:needed]...)
}

// port returns the port of a socket.
func port(fd int) int {
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return at.Port
	case *unix.SockaddrInet6:
		return at.Port
	default:
		return 0
	}
}

// messages returns what the listeners have got so far.
func (h *host) messages() map[string]bool {
	all := map[string]bool{}
	buffer := make([]byte, 256)
	for _, fd := range []int{h.datagrams, h.abstracts, h.udp} {
		for {
			n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				break
			}
			all[string(buffer[:n])] = true
		}
	}
	return all
}

// startVictim starts a process of the user.
func (h *host) startVictim() (stop func(), err error) {
	folder := filepath.Join(h.target.Outside, "victim")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "secret"), []byte(wayout.Secret), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(h.base, "attack"), "victim", folder)
	cmd.Env = append(os.Environ(), "VICTIM="+wayout.Secret)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := stdout.Read(make([]byte, 8)); err != nil {
		return nil, fmt.Errorf("the victim is not ready: %w", err)
	}
	h.target.Victim = cmd.Process.Pid
	return func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}, nil
}

// pending returns the pending signals of the victim.
func (h *host) pending() uint64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.target.Victim))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "ShdPnd:"); ok {
			var bits uint64
			_, _ = fmt.Sscanf(strings.TrimSpace(value), "%x", &bits)
			return bits
		}
	}
	return 0
}
