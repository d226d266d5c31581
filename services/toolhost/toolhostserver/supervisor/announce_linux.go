package supervisor

import (
	"bufio"
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// beginFD is the descriptor to which the shell of an announced command writes when it begins.
// It has one digit, as sh(1) wants it.
const beginFD = 9

// beginning is the shell of an announced command: it starts confined, reports that, and becomes
// the shell of the command line that is its argument.
const beginning = `echo >&9 && exec 9>&- && exec /bin/sh -c "$1"`

// announcement reports that a command has begun. A nil one does nothing.
type announcement struct {
	read, write int
	done        chan struct{}
}

// openAnnouncement opens the pipe of an announced command.
func openAnnouncement(announced bool) (*announcement, error) {
	if !announced {
		return nil, nil //nolint:nilnil // nothing to announce
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	return &announcement{read: ends[0], write: ends[1], done: make(chan struct{})}, nil
}

// shell returns the command line of the shell.
func (a *announcement) shell(line string) []string {
	if a == nil {
		return []string{"/bin/sh", "-c", line}
	}
	return []string{"/bin/sh", "-c", beginning, "sh", line}
}

// files returns the descriptors of the first process of the command, from 3 on.
func (a *announcement) files(of []uintptr) []uintptr {
	if a == nil {
		return of
	}
	for len(of) < beginFD-lifelineFD {
		of = append(of[:len(of):len(of)], ^uintptr(0)) // closed
	}
	return append(of, uintptr(a.write))
}

// send reports the beginning once the shell has begun. It ends when that has happened, or no
// process is left that could begin.
func (a *announcement) send(report *os.File, s *setup) {
	if a == nil {
		return
	}
	_ = unix.Close(a.write)
	go func() {
		defer close(a.done)
		pipe := os.NewFile(uintptr(a.read), "beginning")
		defer func() { _ = pipe.Close() }()
		if n, _ := pipe.Read(make([]byte, 1)); n == 0 {
			return
		}
		begun := s.place()
		begun.Begun = true
		_ = json.NewEncoder(report).Encode(begun)
	}()
}

// wait returns when nothing is reported any more. All processes of the command are dead.
func (a *announcement) wait() {
	if a != nil {
		<-a.done
	}
}

// place returns the namespaces of the command, by what bubblewrap has written when it made
// them.
func (s *setup) place() (b Begun) {
	if s.status == nil {
		return b
	}
	if s.released != nil {
		<-s.released
	} else {
		s.read()
	}
	b.PID, b.Network = s.made.PID, s.made.Network
	return b
}

// read reads what bubblewrap has made: the first line of the status.
func (s *setup) read() {
	s.written = bufio.NewReader(s.status)
	line, err := s.written.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &s.made) != nil {
		s.made.PID, s.made.Network = 0, 0
	}
}
