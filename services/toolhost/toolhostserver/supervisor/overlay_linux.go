package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stage is argv[0] of the process that mounts the overlays of a command and becomes
// bubblewrap; argv[1] has the overlays as JSON, the command line follows. A user other than
// root can mount only in a namespace of users, and only a process with one thread can enter a
// new one: so this is a process.
const stage = "harness-command-stage"

// init is a stage if the process was started as one, and does not return then.
func init() {
	if len(os.Args) < 3 || os.Args[0] != stage {
		return
	}
	fmt.Fprintln(os.Stderr, becomeBubblewrap(os.Args[1], os.Args[2:]))
	os.Exit(1)
}

// becomeBubblewrap returns why it failed to.
func becomeBubblewrap(overlays string, argv []string) error {
	var all []Overlay
	if err := json.Unmarshal([]byte(overlays), &all); err != nil {
		return err
	}
	if err := mountOverlays(all, "userxattr"); err != nil {
		return err
	}
	// Bubblewrap refuses to start with capabilities that it has not got from its file.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return fmt.Errorf("%s: %w", argv[0], unix.Exec(argv[0], argv, os.Environ()))
}

func mountOverlays(all []Overlay, more string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, o := range all {
		options := "lowerdir=" + o.Lower + ",upperdir=" + o.Upper + ",workdir=" + o.Work
		if more != "" {
			options += "," + more
		}
		if err := unix.Mount("overlay", o.Merged, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("overlay of %s: %w", o.Lower, err)
		}
	}
	return nil
}

// overlay prepares the overlays of the plan: root mounts them in a namespace of this thread,
// another user starts bubblewrap through a stage. It returns the command line and how to start
// it.
func (p *Plan) overlay(argv []string) (path string, _ []string, sys *syscall.SysProcAttr, err error) {
	sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p == nil || len(p.Overlays) == 0 {
		return argv[0], argv, sys, nil
	}
	if os.Geteuid() == 0 {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return "", nil, nil, fmt.Errorf("namespace of mounts: %w", err)
		}
		return argv[0], argv, sys, mountOverlays(p.Overlays, "")
	}
	overlays, err := json.Marshal(p.Overlays)
	if err != nil {
		return "", nil, nil, err
	}
	sys.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	// The kernel acts on the folders of an overlay with the capabilities of its mount.
	sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_CHOWN}
	return "/proc/self/exe", append([]string{stage, string(overlays)}, argv...), sys, nil
}
