package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// attempts are what a confined process tries, by name: this program, started by a confined
// shell, makes one of them. Each returns the error that it got.
var attempts = map[string]func(outside string) error{
	"read a file": func(outside string) error {
		_, err := os.ReadFile(outside)
		return err
	},
	"read a file through /proc": func(outside string) error {
		_, err := os.ReadFile("/proc/self/root" + outside)
		return err
	},
	"write a file":  func(outside string) error { return os.WriteFile(outside, []byte("x"), 0o600) },
	"rename a file": func(outside string) error { return os.Rename(outside, "stolen") },
	"link a file":   func(outside string) error { return os.Link(outside, "linked") },
	"signal": func(string) error {
		return unix.Kill(1, 0)
	},
	"tcp":       func(string) error { return socket(unix.AF_INET, unix.SOCK_STREAM) },
	"udp":       func(string) error { return socket(unix.AF_INET6, unix.SOCK_DGRAM) },
	"vsock":     func(string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) },
	"packet":    func(string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW) },
	"unix":      func(string) error { return socket(unix.AF_UNIX, unix.SOCK_STREAM) },
	"io_uring":  func(string) error { return call(unix.SYS_IO_URING_SETUP, 1, 0) },
	"bpf":       func(string) error { return call(unix.SYS_BPF, 0, 0) },
	"keyring":   func(string) error { return call(unix.SYS_KEYCTL, 0, 0) },
	"namespace": func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"mount":     func(string) error { return unix.Mount("tmpfs", ".", "tmpfs", 0, "") },
	"chown":     func(outside string) error { return os.Chown(outside, 1, 1) },
	"x32":       func(string) error { return call(0x4000_0000|unix.SYS_GETPID, 0, 0) },
	"typing":    func(string) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI) },
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// attempt makes one attempt and prints its error.
func attempt(name, outside string) {
	if err := attempts[name](outside); err != nil {
		var errno unix.Errno
		errors.As(err, &errno)
		fmt.Print(unix.ErrnoName(errno))
	}
	os.Exit(0)
}

// confined returns the plan for a command that may use its folder, without network.
func confined(t *testing.T, dir string) *Plan {
	t.Helper()
	abi := supervisor.LandlockABI()
	if abi < supervisor.ABIScopes {
		t.Fatalf("this kernel has Landlock %d, the test needs %d", abi, supervisor.ABIScopes)
	}
	return &Plan{ABI: abi, Read: []string{"/usr", "/bin", "/lib", "/lib64", "/proc", "/etc", filepath.Dir(self(t))}, Write: []string{dir}, Device: []string{"/dev/null"}}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfinedCommand tries each way out, and that a command can still work.
func TestConfinedCommand(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range attempts {
		want := "EPERM"
		switch name {
		case "read a file", "read a file through /proc", "write a file", "rename a file", "tcp", "udp", "vsock", "packet", "unix":
			want = "EACCES"
		case "link a file":
			want = "EXDEV" // what Landlock answers for a link into another folder
		}
		line := fmt.Sprintf("ATTEMPT=%q OUTSIDE=%q %q", name, outside, self(t))
		if got := output(t, dir, confined(t, dir), line); got != want {
			t.Errorf("%s: got %q, want %s", name, got, want)
		}
	}
	if got := output(t, dir, confined(t, dir), "echo a > f && mkdir d && mv f d/g && cat d/g && (sleep 0 & wait) && ls d | wc -l"); got != "a\n1\n" {
		t.Errorf("a command that stays inside printed %q", got)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

// TestInternetOnRequest: a plan with network reaches a listener of this machine.
func TestInternetOnRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	plan := confined(t, dir)
	plan.Internet = true
	if got := output(t, dir, plan, fmt.Sprintf("ATTEMPT=tcp %q", self(t))); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestNothingStartsLessConfined: a supervisor that finds less than the host has found starts
// nothing.
func TestNothingStartsLessConfined(t *testing.T) {
	dir := t.TempDir()
	plan := confined(t, dir)
	plan.ABI++
	exit, err := Run(context.Background(), Command{Line: "touch started", Dir: dir, Environ: os.Environ(), Mark: "test", Plan: plan, Output: &strings.Builder{}})
	if err != nil || !strings.Contains(exit.Error, "landlock") {
		t.Errorf("got %+v, %v", exit, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the command was started")
	}
}

// output runs a command line in a folder and returns what it prints.
func output(t *testing.T, dir string, plan *Plan, line string) string {
	t.Helper()
	var out strings.Builder
	exit, err := Run(context.Background(), Command{Line: line, Dir: dir, Environ: os.Environ(), Mark: "test", Plan: plan, Output: &out})
	if err != nil || exit.Error != "" {
		t.Fatalf("%s: %+v, %v", line, exit, err)
	}
	return out.String()
}

func call(number uintptr, a, b uintptr) error {
	if _, _, errno := unix.Syscall(number, a, b, 0); errno != 0 {
		return errno
	}
	return nil
}
