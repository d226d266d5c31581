package process

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// proxied returns the plan of a command with a listener in a separate network.
func proxied(t *testing.T, listen string) *Plan {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal("the test needs bubblewrap: install it")
	}
	return &Plan{
		ABI: supervisor.LandlockABI(), Unix: true, Listen: listen,
		Bwrap: []string{bwrap, "--unshare-pid", "--unshare-net", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"},
	}
}

// serving runs a command line whose listener answers each connection with a word.
func serving(t *testing.T, ctx context.Context, plan *Plan, line string) (exit Exit, out string, served bool) {
	t.Helper()
	var output strings.Builder
	exit, err := Run(ctx, Command{
		Line: line, Dir: t.TempDir(), Environ: os.Environ(), Mark: "test", Plan: plan, Output: &output,
		Serve: func(l net.Listener) {
			served = true
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "served\n")
				_ = conn.Close()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return exit, output.String(), served
}

// TestTheHostServesTheListener, which is in the command's network alone, and of which the
// command has nothing but the address.
func TestTheHostServesTheListener(t *testing.T) {
	exit, out, served := serving(t, t.Context(), proxied(t, "127.0.0.1:61080"), "curl -s --http0.9 http://127.0.0.1:61080; ls /proc/self/fd | wc -l; ls -l /proc/*/fd | grep -c socket:; echo $0 $PPID")
	// 0, 1, 2 and the folder; no socket in any process of the namespace; the shell is the
	// child of the first process.
	if exit.Code != 0 || out != "served\n4\n0\n/bin/sh 1\n" || !served {
		t.Errorf("got %+v, %q", exit, out)
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:61080"); err == nil {
		_ = conn.Close()
		t.Error("the listener is in the network of the machine")
	}
	for range 8 { // a command can end before the host has looked at its listener
		if exit, _, served := serving(t, t.Context(), proxied(t, "127.0.0.1:61080"), "true"); exit.Code != 0 || exit.Error != "" || !served {
			t.Fatalf("got %+v, served %v", exit, served)
		}
	}
}

// TestNothingRunsWithoutItsProxy: a listener that cannot be made is a confinement that cannot
// be set up.
func TestNothingRunsWithoutItsProxy(t *testing.T) {
	exit, out, served := serving(t, t.Context(), proxied(t, "127.0.0.1:1"), "echo started")
	if !exit.Unconfined || exit.Error == "" || strings.Contains(out, "started") || served {
		t.Errorf("got %+v, %q", exit, out)
	}
}

// TestAKilledCommandHasNoListener: the serving ends with the command.
func TestAKilledCommandHasNoListener(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	plan := proxied(t, "127.0.0.1:61080")
	var output strings.Builder
	exit, err := Run(ctx, Command{
		Line: "sleep 3600", Dir: t.TempDir(), Environ: os.Environ(), Mark: "test", Plan: plan, Output: &output,
		Serve: func(l net.Listener) {
			cancel()
			for {
				if _, err := l.Accept(); err != nil {
					return
				}
			}
		},
	})
	if err != nil || !exit.Stopped || exit.Unconfined {
		t.Errorf("got %+v, %v", exit, err)
	}
}
