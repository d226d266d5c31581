package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// proxy is what serves the listener of a command. The command's first process makes it in the
// network of the command and sends it to this process, which alone has it then. A nil proxy
// is that of a command without one.
type proxy struct {
	serve func(net.Listener)
	// here receives the listener from there, the end of the command.
	here, there *os.File

	running sync.WaitGroup
	// came is closed when listener is set, or does not come any more. It is nil before
	// start.
	came     chan struct{}
	listener net.Listener
}

// openProxy returns the proxy of a command; nil if it needs none.
func (c Command) openProxy() (*proxy, error) {
	if c.Plan == nil || c.Plan.Listen == "" {
		return nil, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket of the proxy: %w", err)
	}
	p := &proxy{serve: c.Serve, here: os.NewFile(uintptr(pair[0]), "proxy"), there: os.NewFile(uintptr(pair[1]), "proxy")}
	return p, nil
}

// files returns the files for the supervisor.
func (p *proxy) files() []*os.File {
	if p == nil {
		return nil
	}
	return []*os.File{p.there}
}

// start serves the listener once it has come.
func (p *proxy) start() {
	if p == nil {
		return
	}
	p.came = make(chan struct{})
	p.running.Go(func() {
		listener, err := p.receive()
		if err == nil {
			p.listener = listener
		}
		close(p.came)
		if err == nil {
			p.serve(listener)
		}
	})
}

// close ends the serving and waits for its end. It reports whether a listener had come. All
// processes of the command are dead, so it has come if it ever does.
func (p *proxy) close() bool {
	if p == nil {
		return true
	}
	_ = p.there.Close()
	if p.came != nil {
		_ = p.here.SetReadDeadline(time.Now().Add(drainTimeout))
		<-p.came
	}
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.running.Wait()
	_ = p.here.Close()
	return p.listener != nil
}

// receive returns the listener that the command's first process sends.
func (p *proxy) receive() (net.Listener, error) {
	raw, err := p.here.SyscallConn()
	if err != nil {
		return nil, err
	}
	var n int
	var received error
	rights := make([]byte, unix.CmsgSpace(4))
	message := make([]byte, 1)
	err = raw.Read(func(fd uintptr) bool {
		_, n, _, _, received = unix.Recvmsg(int(fd), message, rights, unix.MSG_CMSG_CLOEXEC)
		return received != unix.EAGAIN && received != unix.EINTR
	})
	if err = errors.Join(err, received); err != nil {
		return nil, err
	}
	parts, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(parts) != 1 {
		return nil, errors.Join(errors.New("no listener came"), err)
	}
	fds, err := unix.ParseUnixRights(&parts[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no listener came"), err)
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = file.Close() }()
	return net.FileListener(file) // a copy
}
