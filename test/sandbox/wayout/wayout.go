//go:build linux

// Package wayout has the ways by which a command could leave its sandbox, one function
// each. The program attack tries them from inside, the program host prepares what they
// are after and looks at it afterwards.
//
// A way is open if it had its effect: it returned what it should not have, or what it
// should not reach has changed. A way that is a system call is open if the call reaches
// the kernel, whatever the kernel thinks of its arguments, which are harmless.
package wayout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Way is one way out.
type Way struct {
	// Group and Name identify it in the table.
	Group, Name string
	// Try goes it, from inside. No error means that it is open.
	Try func(t *Target) error
	// Prepare, if set, prepares what the way is after, from outside. An error is why the
	// way cannot be tried here.
	Prepare func(t *Target) error
	// Seen, if set, reports from outside, after the command, whether the way had its
	// effect. It decides if Try got no error.
	Seen func(t *Target) bool
	// Clean, if set, removes afterwards what Prepare has made outside of the folders.
	Clean func(t *Target)
	// Network has the way tried with network.
	Network bool
	// Alone has the way tried by a command that does nothing else, with the limits of all
	// processes of a command. That the command is killed for it means that the way is held.
	Alone bool
}

// Target is what the ways are after.
type Target struct {
	// Outside has a folder a way, each with a file, a folder and a program.
	Outside string
	// Readable is a folder that the command may read.
	Readable string
	// Workspace is the folder of the command.
	Workspace string
	// Home is that of the user, Data the folder of the harness.
	Home, Data string
	// Victim is a process of the user, Host the process that runs commands.
	Victim, Host int
	// Ports of listeners on loopback.
	TCP, TCP6, UDP int
	// Stream and Datagram are unix sockets, Abstract and AbstractDatagram abstract ones.
	Stream, Datagram, Abstract, AbstractDatagram string
	// Memory is the key of System V memory, Queue the name of a POSIX queue.
	Memory int
	Queue  string
	// Mark is in the command line of what outlives a command.
	Mark string

	// Received has the messages that listeners of the host got from the command. Signals has
	// the victim's pending signals, a bit each. Both are known afterwards.
	Received map[string]bool `json:"-"`
	Signals  uint64          `json:"-"`

	// way is the one that is tried.
	way string
}

// Secret is what no command may learn.
const Secret = "the-secret-of-the-user"

// All returns the ways, in the order of the table.
func All() []Way {
	var all []Way
	for _, group := range []struct {
		name string
		ways []Way
	}{
		{"files", files}, {"links and renames", links}, {"what belongs to files", properties}, {"programs with the rights of their file", setID}, {"/proc and descriptors", views}, {"the machine", machine},
		{"the harness and the user", harness}, {"processes", processes}, {"namespaces", namespaces}, {"system calls", calls}, {"system calls", callsHere}, {"sockets", sockets}, {"limits", bounds},
	} {
		for _, w := range group.ways {
			w.Group = group.name
			all = append(all, w)
		}
	}
	return all
}

// For returns the target of one way.
func (t Target) For(w Way) *Target {
	t.way = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(w.Name))
	return &t
}

// Folder is the folder outside for this way.
func (t *Target) Folder() string { return filepath.Join(t.Outside, t.way) }

// file is the file outside for this way.
func (t *Target) file() string { return filepath.Join(t.Folder(), "secret") }

// inside returns a path in the workspace for this way.
func (t *Target) inside(name string) string { return filepath.Join(t.Workspace, t.way+"-"+name) }

// Make makes the folder outside for a way.
func (t *Target) Make() error {
	if err := os.RemoveAll(t.Folder()); err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(t.Folder(), "folder"), 0o755),
		os.WriteFile(t.file(), []byte(Secret), 0o600),
		os.WriteFile(filepath.Join(t.Folder(), "program"), []byte("#!/bin/sh\nexit 0\n"), 0o755),
	)
}

// errNothing is returned by a way that was not refused but got nothing.
var errNothing = errors.New("nothing there")

// read reads a file that has the secret.
func read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), Secret) {
		return errNothing
	}
	return nil
}

// open opens a file.
func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// reaches makes a system call and returns an error only if it is refused or unknown.
func reaches(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return refusal(errno)
}

// refusal returns an error that means that a call was refused, or is unknown.
func refusal(err error) error {
	for _, refused := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS} {
		if errors.Is(err, refused) {
			return err
		}
	}
	return nil
}

// changed reports whether the file of a way is not as it was made.
func changed(t *Target) bool {
	data, err := os.ReadFile(t.file())
	return err != nil || string(data) != Secret
}

// exists returns a function that reports whether a path in the folder of a way exists.
func exists(name string) func(*Target) bool {
	return func(t *Target) bool {
		_, err := os.Lstat(filepath.Join(t.Folder(), name))
		return err == nil
	}
}

// Errno returns the name of an error's number, or its text.
func Errno(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}
