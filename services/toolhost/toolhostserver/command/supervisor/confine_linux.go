package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// confineError is why a confinement could not be set up.
type confineError struct{ err error }

// Error names the step that failed.
func (e *confineError) Error() string { return e.err.Error() }

// confine restricts this thread as the plan says, and returns the command line and the
// descriptors from 3 on with which argv starts confined. A nil plan restricts nothing.
func (p *Plan) confine(argv []string) ([]string, []uintptr, error) {
	if p == nil {
		return argv, nil, nil
	}
	filter, err := p.filter()
	if err != nil {
		return nil, nil, &confineError{err}
	}
	steps := []func() error{p.limit, noNewPrivileges, p.landlock, p.capabilities}
	var files []uintptr
	if len(p.Bwrap) > 0 {
		fd, err := filterFile(filter)
		if err != nil {
			return nil, nil, &confineError{err}
		}
		files = append(files, uintptr(fd))
		argv = append(append(p.Bwrap[:len(p.Bwrap):len(p.Bwrap)], "--seccomp", "3", "--"), argv...)
	} else {
		steps = append(steps, func() error { return install(filter) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, &confineError{err}
		}
	}
	return argv, files, nil
}

// limit sets the limits of the process, which the command inherits. None is raised above
// its present hard limit.
func (p *Plan) limit() error {
	for _, l := range p.Limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.Resource, &now); err != nil {
			return fmt.Errorf("limit %d: %w", l.Resource, err)
		}
		most := min(l.Max, now.Max)
		if err := unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit %d: %w", l.Resource, err)
		}
	}
	return nil
}

// capabilities drops those of this thread, but for the one to use files of others in what the
// command can reach. Bubblewrap needs them all, and drops them itself.
func (p *Plan) capabilities() error {
	if len(p.Bwrap) > 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if now[0].Permitted|now[1].Permitted == 0 {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c != unix.CAP_DAC_OVERRIDE {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // without the right to do so there is nothing to gain from the set
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	kept := now[0].Permitted & (1 << unix.CAP_DAC_OVERRIDE)
	next := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	if err := unix.Capset(&header, &next[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

func noNewPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}
