package guard

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Events of places. Those of structure are about entries, those of content about the data of entries too.
const (
	structure = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	content   = structure | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
	lost      = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_IGNORED | unix.IN_UNMOUNT
)

// notifier is the inotify instance of a guard, which all calls share: the kernel bounds the instances
// of a user. The kernel also bounds the places; then watch returns an error.
type notifier struct {
	mu    sync.Mutex
	file  *os.File                           // nil before the first subscription and after close
	fd    int                                // of file, whose method Fd would make it block
	users map[int32]map[*subscription]*place // by watch descriptor
	done  chan struct{}                      // closed when the reader has ended
	// refused is the error of the kernel in a test.
	refused error
}

// subscription receives the events of the places of a call.
type subscription struct {
	notifier *notifier
	at       map[string]int32 // watch descriptors by path; notifier.mu
	news     news             // since it was taken; notifier.mu
	ready    chan struct{}    // has one element if there is news
}

func (n *notifier) subscribe() (*subscription, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused != nil {
		return nil, n.refused
	}
	if n.file == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return nil, os.NewSyscallError("inotify_init1", err)
		}
		n.fd = fd
		n.file, n.users, n.done = os.NewFile(uintptr(fd), "inotify"), map[int32]map[*subscription]*place{}, make(chan struct{})
		go n.read(n.file, n.done)
	}
	return &subscription{notifier: n, at: map[string]int32{}, ready: make(chan struct{}, 1)}, nil
}

// close ends the reader. No subscription is open.
func (n *notifier) close() {
	n.mu.Lock()
	file, done := n.file, n.done
	n.file = nil
	n.mu.Unlock()
	if file != nil {
		_ = file.Close()
		<-done
	}
}

// watch sets the places of a subscription. It reports whether one of them is new, which has no
// events from before. The error means that not all of them are watched.
func (s *subscription) watch(places map[string]*place) (added bool, err error) {
	n := s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	for path, wd := range s.at {
		if places[path] == nil {
			n.drop(s, path, wd)
		}
	}
	for path, p := range places {
		former, known := s.at[path]
		wd, addErr := n.add(path, p)
		if addErr != nil {
			if known {
				n.drop(s, path, former)
			}
			if !errors.Is(addErr, unix.ENOENT) && !errors.Is(addErr, unix.ENOTDIR) {
				err = addErr
			}
			continue
		}
		if known && former != wd {
			n.drop(s, path, former)
		}
		if !known || former != wd {
			added = true
		}
		if n.users[wd] == nil {
			n.users[wd] = map[*subscription]*place{}
		}
		if twin := n.users[wd][s]; twin != nil && twin != p && twin.path != path { // another path of the same folder
			p = &place{path: path, any: true, content: true}
		}
		s.at[path], n.users[wd][s] = wd, p
	}
	return added, err
}

// add watches a path. mu is locked.
func (n *notifier) add(path string, p *place) (int32, error) {
	mask := uint32(structure)
	if p.content {
		mask = content
	}
	wd, err := unix.InotifyAddWatch(n.fd, path, mask|unix.IN_MASK_ADD|unix.IN_DONT_FOLLOW)
	return int32(wd), os.NewSyscallError("inotify_add_watch", err) //nolint:gosec // the kernel counts them in 32 bits
}

// drop removes a path of a subscription. mu is locked.
func (n *notifier) drop(s *subscription, path string, wd int32) {
	delete(s.at, path)
	delete(n.users[wd], s)
	if len(n.users[wd]) == 0 {
		delete(n.users, wd)
		if n.file != nil {
			_, _ = unix.InotifyRmWatch(n.fd, uint32(wd)) //nolint:gosec // not negative
		}
	}
}

func (s *subscription) close() {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	for path, wd := range s.at {
		s.notifier.drop(s, path, wd)
	}
}

// take returns the news, and forgets them.
func (s *subscription) take() news {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	taken := s.news
	s.news = nothing
	return taken
}

// record adds news. notifier.mu is locked.
func (s *subscription) record(what news) {
	if what == nothing {
		return
	}
	s.news = max(s.news, what)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (n *notifier) read(file *os.File, done chan struct{}) {
	defer close(done)
	buffer := make([]byte, 64<<10)
	for {
		size, err := file.Read(buffer)
		if err != nil {
			return
		}
		n.mu.Lock()
		for rest := buffer[:size]; len(rest) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:]) //nolint:gosec // as the kernel writes it
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			n.event(wd, mask, strings.TrimRight(string(rest[unix.SizeofInotifyEvent:end]), "\x00"))
			rest = rest[end:]
		}
		n.mu.Unlock()
	}
}

// event records an event for its subscriptions. mu is locked.
func (n *notifier) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, users := range n.users {
			for s := range users {
				s.record(folders)
			}
		}
		return
	}
	for s, p := range n.users[wd] {
		if mask&lost != 0 {
			s.record(folders)
			if mask&unix.IN_IGNORED == 0 {
				continue // it is watched again when the path is read
			}
			delete(s.at, p.path)
			continue
		}
		s.record(p.what(name, mask&unix.IN_ISDIR != 0))
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(n.users, wd)
	}
}
