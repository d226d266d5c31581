//go:build linux

package startup

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// maxIdle bounds the anonymous memory of a background process without work, in bytes. The
// pages of the program's file come on top, which all of its processes share.
const maxIdle = 30e6

// home is a home with a model server.
type home struct {
	tb      testing.TB
	program string
	dir     string
	server  *modeltest.Server
}

func newHome(tb testing.TB, program string) *home {
	tb.Helper()
	h := &home{tb: tb, program: program, dir: tb.TempDir(), server: modeltest.NewServerFunc(tb, func(*modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{{ID: "c", Name: "work_complete", Arguments: `{"summary":"Done."}`}}}
	})}
	tb.Cleanup(h.stop)
	return h
}

// command is one in a terminal of the home.
func (h *home) command(arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(h.tb.Context()), h.program, arguments...)
	cmd.Dir = h.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "XDG_RUNTIME_DIR=" + h.dir, "OPENAI_API_KEY=sk-0123456789abcdef", "OPENAI_BASE_URL=" + h.server.BaseURL(),
	}
	return cmd
}

// stop stops the background process.
func (h *home) stop() {
	h.tb.Helper()
	if out, err := h.command("daemon", "stop", "--now").CombinedOutput(); err != nil {
		h.tb.Errorf("stop: %v\n%s", err, out)
	}
}

// firstRequest runs a goal to its end, and returns the time from the start of the program to
// its first request to the model.
func (h *home) firstRequest() time.Duration {
	h.tb.Helper()
	cmd := h.command("run", "--workspace", h.dir, "--model", "openai:test-model", "--output", "json", "Finish.")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		h.tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-h.server.Arrived():
	case err := <-ended:
		h.tb.Fatalf("the run ended without a request: %v\n%s", err, out.String())
	}
	took := time.Since(began)
	if err := <-ended; err != nil {
		h.tb.Fatalf("run: %v\n%s", err, out.String())
	}
	return took
}

// pid returns the background process.
func (h *home) pid() int {
	h.tb.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, ".local", "share", "harness", "holder.json"))
	if err != nil {
		h.tb.Fatal(err)
	}
	var holder struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &holder); err != nil {
		h.tb.Fatal(err)
	}
	return holder.PID
}

// BenchmarkFirstRequest measures the time from the start of harness run to the first request
// that a model server gets: cold without a background process, warm with one. The floor is
// the time of harness version.
func BenchmarkFirstRequest(b *testing.B) {
	program := build(b, "./cmd/harness")
	for _, c := range []struct {
		name string
		warm bool
	}{{"cold", false}, {"warm", true}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHome(b, program)
			if c.warm {
				h.firstRequest()
			}
			var times, floors []time.Duration
			for b.Loop() {
				if !c.warm {
					h.stop()
				}
				times = append(times, h.firstRequest())
				began := time.Now()
				if err := h.command("version").Run(); err != nil {
					b.Fatal(err)
				}
				floors = append(floors, time.Since(began))
			}
			slices.Sort(times)
			slices.Sort(floors)
			median, floor := times[len(times)/2], floors[len(floors)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median.Microseconds())/1e3, "ms")
			b.ReportMetric(float64(floor.Microseconds())/1e3, "floor-ms")
			b.ReportMetric(float64(median)/float64(floor), "time/floor")
			resident, own := idleMemory(b, h.pid())
			b.ReportMetric(float64(resident)/(1<<20), "idle-MiB")
			b.ReportMetric(float64(own)/(1<<20), "idle-anon-MiB")
		})
	}
}

func TestIdleBackgroundProcessIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	h := newHome(t, build(t, "./cmd/harness"))
	for range 3 {
		h.firstRequest()
	}
	resident, own := idleMemory(t, h.pid())
	t.Logf("idle, the background process has %.1f MiB, of which %.1f MiB are anonymous", float64(resident)/(1<<20), float64(own)/(1<<20))
	if own > maxIdle {
		t.Errorf("idle, the background process has %.1f MB of anonymous memory, more than %.0f", float64(own)/1e6, maxIdle/1e6)
	}
}

// idleWait is longer than the process takes to return the memory of its last run.
const idleWait = 12 * time.Second

// idleMemory returns the least resident memory of a process in idleWait, and what of it is
// anonymous, in bytes.
func idleMemory(tb testing.TB, pid int) (least, own int64) {
	tb.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(idleWait); ; {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
		if err != nil {
			tb.Fatal(err)
		}
		pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		if bytes := pages * int64(os.Getpagesize()); least == 0 || bytes < least {
			least, own = bytes, anonymous(tb, pid)
		}
		select {
		case <-end:
			return least, own
		case <-tick.C:
		}
	}
}
