// Package disktest makes disks that are full, for servers that store what they
// acknowledge. A Disk is a small file system in memory.
//
// A process that may not mount runs the tests again in a user namespace, in which it may:
// call Enter first in TestMain.
package disktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Size is enough for what a small mesh stores before its disk is full.
const Size = 48 << 20

// inside is set in the environment of a process that Enter has started.
const inside = "HARNESS_TEST_NAMESPACE"

// Enter returns if this process may mount. Otherwise it runs the same program in separate user
// and mount namespaces and exits with its code.
func Enter() {
	if os.Getenv(inside) != "" || mayMount() {
		return
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	err := cmd.Run()
	var ended *exec.ExitError
	if err == nil || errors.As(err, &ended) {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	// Only the tests that need a disk fail, and they report the reason.
}

// mayMount reports whether this process may mount a file system.
func mayMount() bool {
	dir, err := os.MkdirTemp("", "disktest")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4096") != nil {
		return false
	}
	return syscall.Unmount(dir, 0) == nil
}

// Disk is a folder on a separate disk.
type Disk struct {
	// Dir is the folder.
	Dir string

	tb testing.TB
}

// New returns an empty disk of Size bytes. It is unmounted at the end of the test.
func New(tb testing.TB) *Disk {
	tb.Helper()
	d := &Disk{Dir: tb.TempDir(), tb: tb}
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d", Size)); err != nil {
		tb.Fatalf("mount a file system in memory: %v; run the test as root, or allow user namespaces to users", err)
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return d
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Fill leaves no room on the disk. Files may still grow within their last page.
func (d *Disk) Fill() {
	d.tb.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.tb.Fatal(err)
	}
	page := make([]byte, os.Getpagesize())
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		d.tb.Fatal(err)
	}
}

// Free makes room again.
func (d *Disk) Free() {
	d.tb.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.tb.Fatal(err)
	}
}
