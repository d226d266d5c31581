package toolhostserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// withDescriptors runs f while this process can open n more files.
func withDescriptors(t *testing.T, n int, f func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	var taken []int
	defer func() {
		for _, fd := range taken {
			_ = unix.Close(fd)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	limit := before
	limit.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, fd)
	}
	for range n {
		_ = unix.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	f()
}

// TestAHostWithoutDescriptorsReportsWhatWasNotStarted, whichever file is the first that cannot
// be opened: the caller reads that nothing ran, and can send the call again, and no file of a repository that could not be read is put back.
func TestAHostWithoutDescriptorsReportsWhatWasNotStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("tries every number of descriptors")
	}
	h := newHost(t, Config{})
	h.command("git init -q .") // so that there is something to guard
	config := h.read(".git/config")
	started := false
	for n := 0; n < 64 && !started; n++ {
		for name, more := range map[string]map[string]any{"command": {}, "background": {"background": true}} {
			arguments := map[string]any{"command": "echo started >> " + name + "; sleep 0"}
			for k, v := range more {
				arguments[k] = v
			}
			_ = os.Remove(filepath.Join(h.dir, name))
			req := h.request(tools.RunCommand, "", arguments)
			var resp *harnessv1.ExecuteToolResponse
			var err error
			withDescriptors(t, n, func() { resp, err = h.ExecuteTool(context.Background(), req) })
			runs := func() int {
				if name == "background" {
					for resp.GetBackground() != nil && h.backgroundStates(resp.GetBackground())[0].GetRunning() {
					}
				}
				text, _ := os.ReadFile(filepath.Join(h.dir, name))
				return strings.Count(string(text), "started")
			}
			switch {
			case err != nil:
				var f *fault.Error
				if !errors.As(err, &f) || f.Reason != harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED || runs() != 0 {
					t.Errorf("%s with %d descriptors: %v, ran %d times", name, n, err, runs())
				}
				if resp = h.execute(req); resp.GetOutcome() != done || runs() != 1 {
					t.Errorf("%s with %d descriptors, sent again: %v, ran %d times", name, n, resp, runs())
				}
			case resp.GetIsError():
				text := resp.GetResult()
				if runs() != 0 || !strings.Contains(text, "could not be started") && !strings.Contains(text, "was not run") && !strings.Contains(text, "cannot be used") {
					t.Errorf("%s with %d descriptors: ran %d times: %v", name, n, runs(), resp)
				}
			case runs() != 1:
				t.Errorf("%s with %d descriptors: ran %d times: %v", name, n, runs(), resp)
			default:
				started = name == "command"
			}
			if text := h.read(".git/config"); text != config || strings.Contains(resp.GetResult(), "Put back") {
				t.Fatalf("%s with %d descriptors: the configuration of git became %q: %v", name, n, text, resp)
			}
		}
	}
	if !started {
		t.Error("the command needs more descriptors than the test leaves")
	}
}
