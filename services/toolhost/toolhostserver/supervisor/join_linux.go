package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors of a supervisor whose command joins a network: that of the network namespace,
// and that of the user namespace that owns it.
const (
	joinFD  = 7
	ownerFD = 8
)

// join moves this thread into the network that the command joins. Only root can: another
// user has to enter the owner of the network first, which a process with threads cannot.
func (p *Plan) join() error {
	if p.Join == "" || os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Setns(joinFD, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join the network of the run: %w", err)
	}
	return nil
}

// leaving closes the descriptors of the namespaces before bubblewrap starts.
const leaving = `exec 7>&- 8>&- && exec "$@"`

// entering returns the command line with which a user other than root starts bubblewrap in the
// network that the command joins: nsenter(1) has one thread.
func (s *setup) entering(argv []string) []string {
	if s.plan == nil || s.plan.Join == "" || os.Geteuid() == 0 {
		return argv
	}
	for len(s.files) < joinFD-lifelineFD {
		s.files = append(s.files, ^uintptr(0)) // closed
	}
	s.files = append(s.files, joinFD, ownerFD)
	enter := []string{s.plan.Join, "--preserve-credentials", "--user=/proc/self/fd/8", "--net=/proc/self/fd/7", "--", "/bin/sh", "-c", leaving, "sh"}
	return append(enter, argv...)
}
