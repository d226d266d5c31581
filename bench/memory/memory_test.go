package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// limits are those of deploy/k8s/base, in MiB.
var limits = map[string]int{
	workflow.Gateway: 1024, workflow.Turn: 1024, workflow.Repair: 512, workflow.Compaction: 512, workflow.StopDecision: 512, workflow.Inference: 512,
	workflow.ToolHost: 4096,
}

// newMesh starts a mesh whose processes have the memory limits of their roles, and whose
// models are those of a service.
func newMesh(tb testing.TB, s *service) *meshtest.Mesh {
	tb.Helper()
	m := meshtest.Start(tb, bin, meshtest.Config{Takeover: 5 * time.Second, Without: workflow.Roles()})
	for role, mib := range limits {
		m.Start(role, meshtest.Env(fmt.Sprintf("GOMEMLIMIT=%dMiB", mib*9/10), "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k"))
	}
	for role := range limits {
		m.AwaitReady(role)
	}
	return m
}

// peak returns the largest share of the machine's memory that a process had, in MiB.
func peak(tb testing.TB, pid int) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatalf("memory of a process is read from /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib / 1024
		}
	}
	tb.Fatalf("/proc has no VmHWM of process %d", pid)
	return 0
}

// run executes a run to its end.
func run(tb testing.TB, m *meshtest.Mesh, id, workspace string) *harnessv1.HarnessResult {
	tb.Helper()
	yes := true
	_, err := m.Client().StartRun(tb.Context(), &harnessv1.StartRunRequest{RunId: id, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Write."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "openai:m"},
		Config: &harnessv1.LoopConfig{
			Tools:   &harnessv1.ToolConfig{Yolo: &yes},
			Context: &harnessv1.ContextConfig{MaxInputTokens: new(uint32(50_000_000))},
			Stall:   &harnessv1.StallConfig{Enabled: new(bool)}, // each turn lists the same folder
		},
	}})
	if err != nil {
		tb.Error(err)
		return nil
	}
	result, err := waittest.Watch(tb.Context(), m.Client(), "", id, 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, nil)
	if err != nil {
		tb.Error(err)
	}
	return result
}

// report reports the peak of each role, compared with the bytes that were held, and fails for a
// role that would have been killed.
func report(b *testing.B, m *meshtest.Mesh, held float64) {
	b.Helper()
	for role, limit := range limits {
		p := m.Process(role)
		if p.Ended() {
			b.Errorf("%s has ended:\n%s", role, p.Stderr())
			continue
		}
		most := peak(b, p.PID())
		b.Logf("%-12s peak %5.0f MiB of %4d MiB, held %4.0f MiB: ratio %.1f", role, most, limit, held, most/held)
		if most > float64(limit) {
			b.Errorf("%s exceeds its limit", role)
		}
		if role == workflow.Turn {
			b.ReportMetric(most, "peak-MiB")
			b.ReportMetric(held, "held-MiB")
			b.ReportMetric(most/held, "peak/held")
		}
	}
}

// BenchmarkConversation works on one run whose conversation grows to 3 MB.
func BenchmarkConversation(b *testing.B) { conversations(b, 1) }

// BenchmarkConversations works on many such runs at the same time.
func BenchmarkConversations(b *testing.B) { conversations(b, *runs) }

func conversations(b *testing.B, runs int) {
	const turns, size = 10, 300 << 10
	for b.Loop() {
		s := newService(b, writes(turns, size))
		m := newMesh(b, s)
		var all sync.WaitGroup
		workspace := b.TempDir()
		for n := range runs {
			all.Go(func() {
				if r := run(b, m, fmt.Sprint("r", n), workspace); !r.GetAccepted() {
					b.Errorf("run %d: %v", n, r)
				}
			})
		}
		all.Wait()
		report(b, m, float64(runs*turns*size)/(1<<20))
	}
}

// BenchmarkWrite has a model write a file of 5 MB in one call.
func BenchmarkWrite(b *testing.B) {
	const size = 5 << 20
	for b.Loop() {
		s := newService(b, func(answered int, delta func(map[string]any)) {
			call := func(id, name, arguments string) {
				delta(map[string]any{"delta": map[string]any{"tool_calls": []any{
					map[string]any{"index": 0, "id": id, "function": map[string]any{"name": name, "arguments": arguments}},
				}}})
			}
			if answered > 0 {
				call("b", "work_complete", `{"summary":"done"}`)
			} else {
				call("a", "write_file", `{"path":"large.txt","content":"`)
				for at := range size / piece {
					call("", "", text(at, piece))
				}
				call("", "", `"}`)
			}
			delta(map[string]any{"finish_reason": "tool_calls", "delta": map[string]any{}})
		})
		m := newMesh(b, s)
		workspace := b.TempDir()
		if r := run(b, m, "writes", workspace); !r.GetAccepted() {
			b.Errorf("the run ended as %v", r)
		}
		if info, err := os.Stat(filepath.Join(workspace, "large.txt")); err != nil || info.Size() != size {
			b.Errorf("the file: %v, %v", info, err)
		}
		report(b, m, size/(1<<20))
	}
}

// BenchmarkEndlessAnswer has services that send 1 GB to several runs at the same time.
func BenchmarkEndlessAnswer(b *testing.B) {
	const (
		size  = 1 << 30
		large = 8 // answers that a process receives at the same time
	)
	for b.Loop() {
		block := text(1, 64<<10)
		s := newService(b, func(_ int, delta func(map[string]any)) {
			for range size / len(block) {
				delta(map[string]any{"delta": map[string]any{"content": block}})
			}
		})
		m := newMesh(b, s)
		var all sync.WaitGroup
		workspace := b.TempDir()
		for n := range *runs {
			all.Go(func() {
				if r := run(b, m, fmt.Sprint("endless", n), workspace); r.GetReason().GetKind() != "provider_unavailable" {
					b.Errorf("run %d: %v", n, r)
				}
			})
		}
		all.Wait()
		report(b, m, float64(min(*runs, large))*adapter.MaxAnswer/(1<<20))
	}
}
