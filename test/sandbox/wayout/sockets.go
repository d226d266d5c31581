//go:build linux

package wayout

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sockets lead to other processes, machines, and parts of the kernel.
var sockets = []Way{
	{Name: "connect to a port of the machine (TCP)", Try: func(t *Target) error { return connect("tcp4", "127.0.0.1", t.TCP) }},
	{Name: "connect to a port of the machine (TCP, IPv6)", Prepare: func(t *Target) error {
		if t.TCP6 == 0 {
			return errors.New("there is no IPv6")
		}
		return nil
	}, Try: func(t *Target) error { return connect("tcp6", "::1", t.TCP6) }},
	{Name: "connect to a port of the machine (MPTCP)", Try: func(t *Target) error {
		const mptcp = 262
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, mptcp)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrInet4{Port: t.TCP, Addr: [4]byte{127, 0, 0, 1}})
	}},
	{Name: "open a port of the machine (TCP)", Try: func(t *Target) error {
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(t.TCP)) // taken, where this is the machine's network
		if err == nil {
			_ = l.Close()
			return errNothing
		}
		if errors.Is(err, unix.EADDRINUSE) {
			return nil
		}
		return err
	}},
	{Name: "send to a port of the machine (UDP)", Try: func(t *Target) error {
		conn, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", t.UDP))
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte(t.way))
		return err
	}, Seen: received},
	{Name: "raw internet packets", Try: family(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{Name: "packets of the network (AF_PACKET)", Try: family(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{Name: "routes and addresses of the machine (netlink)", Try: func(*Target) error {
		links, err := net.Interfaces()
		if err == nil && len(links) < 2 {
			return errNothing
		}
		return err
	}, Prepare: func(*Target) error {
		links, err := net.Interfaces()
		if err == nil && len(links) < 2 {
			return errors.New("this machine has no network but its loopback")
		}
		return err
	}},
	{Name: "other parts of the kernel (netlink)", Try: func(*Target) error {
		err := error(unix.EPERM)
		for protocol := 1; protocol < 32; protocol++ {
			if err = family(unix.AF_NETLINK, unix.SOCK_RAW, protocol)(nil); err == nil {
				return nil
			}
		}
		return err
	}},
	{Name: "the host of a virtual machine (AF_VSOCK)", Try: reachedFamily(unix.AF_VSOCK, unix.SOCK_STREAM)},
	{Name: "ciphers of the kernel (AF_ALG)", Try: reachedFamily(unix.AF_ALG, unix.SOCK_SEQPACKET)},
	{Name: "any other family of sockets", Try: func(*Target) error {
		known := map[int]bool{unix.AF_UNIX: true, unix.AF_INET: true, unix.AF_INET6: true, unix.AF_NETLINK: true, unix.AF_PACKET: true, unix.AF_VSOCK: true, unix.AF_ALG: true}
		var err error
		for f := range 64 {
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_RDM, unix.SOCK_SEQPACKET} {
				if known[f] {
					continue
				}
				// A family that this kernel has not got reaches it.
				if err = refusal(family(f, kind, 0)(nil)); err == nil {
					return nil
				}
			}
		}
		return err
	}},
	{Name: "connect to a unix socket", Try: unixStream},
	{Name: "send to a unix socket", Try: unixDatagram, Seen: received},
	{Name: "send to a unix socket from a socket pair", Try: pairDatagram, Seen: received},
	{Name: "connect to an abstract unix socket", Try: abstractStream},
	{Name: "send to an abstract unix socket", Try: abstractDatagram, Seen: received},
	{Name: "send to an abstract unix socket from a socket pair", Try: pairAbstract, Seen: received},
	{Name: "be reached at an abstract unix socket", Try: func(t *Target) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + t.Abstract}) // taken, where it is the machine's
		if errors.Is(err, unix.EADDRINUSE) {
			return nil
		}
		return errNothing
	}},
	withNetwork(Way{Name: "connect to a unix socket", Try: unixStream}),
	withNetwork(Way{Name: "send to a unix socket from a socket pair", Try: pairDatagram, Seen: received}),
	withNetwork(Way{Name: "connect to an abstract unix socket", Try: abstractStream}),
	withNetwork(Way{Name: "send to an abstract unix socket from a socket pair", Try: pairAbstract, Seen: received}),
	withNetwork(Way{Name: "packets of the network (AF_PACKET)", Try: family(unix.AF_PACKET, unix.SOCK_RAW, 0)}),
	withNetwork(Way{Name: "raw internet packets", Try: family(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)}),
}

func connect(network, host string, port int) error {
	conn, err := net.Dial(network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// family makes a socket.
func family(f, kind, protocol int) func(*Target) error {
	return func(*Target) error {
		fd, err := unix.Socket(f, kind|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
}

// reachedFamily makes a socket of a family that this kernel may not have.
func reachedFamily(f, kind int) func(*Target) error {
	return func(t *Target) error { return refusal(family(f, kind, 0)(t)) }
}

func unixStream(t *Target) error { return stream(t.Stream) }

func abstractStream(t *Target) error { return stream("@" + t.Abstract) }

func stream(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func unixDatagram(t *Target) error { return datagram(t, t.Datagram) }

func abstractDatagram(t *Target) error { return datagram(t, "@"+t.AbstractDatagram) }

func datagram(t *Target, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte(t.way), 0, &unix.SockaddrUnix{Name: name})
}

func pairDatagram(t *Target) error { return fromPair(t, t.Datagram) }

func pairAbstract(t *Target) error { return fromPair(t, "@"+t.AbstractDatagram) }

// fromPair sends from a socket that is not made by socket(2). The kernel makes a datagram
// socket of a raw one.
func fromPair(t *Target, name string) error {
	err := error(unix.EPERM)
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); err != nil {
			continue
		}
		if err = unix.Connect(pair[0], &unix.SockaddrUnix{Name: name}); err != nil {
			continue
		}
		_, err = unix.Write(pair[0], []byte(t.way))
		if err == nil {
			return nil
		}
	}
	return err
}

// received reports whether a listener of the host got a message of this way.
func received(t *Target) bool { return t.Received[t.way] }

// Limits of the commands of the suite; the last three of those that try one way alone.
const (
	FileBytes      = 4 << 20
	OpenFiles      = 256
	Processes      = 64
	MemoryBytes    = 128 << 20
	TemporaryBytes = 4 << 20
)

// How long a way uses more than it may. The supervisor measures more often.
const (
	excess          = time.Second
	excessOfFolders = 4 * time.Second
)

// bounds are what a command may use.
var bounds = []Way{
	{Name: "write more than limits.file_bytes", Try: func(t *Target) error {
		f, err := os.Create(t.inside("large"))
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(t.inside("large")) }()
		_, err = f.WriteAt([]byte("x"), FileBytes+1)
		return err
	}},
	{Name: "open more than limits.open_files", Try: func(t *Target) error {
		for range OpenFiles + 1 {
			if _, err := unix.Open(t.Workspace, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
				return err
			}
		}
		return nil
	}},
	{Name: "start more than limits.processes", Alone: true, Try: func(*Target) error {
		for range Processes + 1 {
			if err := exec.Command("/bin/sleep", "60").Start(); err != nil {
				return err
			}
		}
		time.Sleep(excess)
		return nil
	}},
	{Name: "start more than limits.processes before they are counted", Alone: true, Try: func(*Target) error {
		for range Processes + Processes + Processes/2 { // the kernel's bound is a little higher
			if err := exec.Command("/bin/sleep", "60").Start(); err != nil {
				return err
			}
		}
		time.Sleep(excess) // where the bound is wide, they are counted
		return nil
	}},
	{Name: "use more than limits.memory_bytes", Alone: true, Try: func(*Target) error {
		memory := make([]byte, MemoryBytes+MemoryBytes/2)
		for i := 0; i < len(memory); i += 1 << 12 {
			memory[i] = 1
		}
		time.Sleep(excess)
		runtime.KeepAlive(memory)
		return nil
	}},
	{Name: "write more than limits.temporary_bytes", Alone: true, Try: func(t *Target) error {
		for i := range 4 {
			path := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", t.Mark, i))
			if err := os.WriteFile(path, make([]byte, TemporaryBytes/2), 0o600); err != nil {
				return err
			}
			defer func() { _ = os.Remove(path) }()
		}
		time.Sleep(excessOfFolders)
		return nil
	}},
	{Name: "raise a limit", Try: func(*Target) error {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
			return err
		}
		if now.Max > OpenFiles {
			return nil
		}
		now.Max++
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &now)
	}},
}
