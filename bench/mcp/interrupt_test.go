package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// BenchmarkInterrupt reports the time from InterruptRun of a run whose call of a server hangs until
// its client receives run.interrupted, as a ratio to that of a run whose command hangs.
func BenchmarkInterrupt(b *testing.B) {
	bed := &bed{b: b, m: meshtest.Start(b, bin, meshtest.Config{})}
	const command = `{name: run_command, arguments: {command: "echo hanging >> out; exec sleep 3600"}}`
	raw := func(how string) func(string) *harnessv1.McpServer {
		return func(workspace string) *harnessv1.McpServer {
			return servertest.Server("notes", servertest.Raw+"="+how, servertest.Lines+"="+filepath.Join(workspace, "out"))
		}
	}
	kinds := []struct {
		name, call string
		server     func(workspace string) *harnessv1.McpServer
	}{
		{"command", command, nil},
		{"cancelled", `{name: mcp__notes__hang, arguments: {seconds: 3600}}`, func(workspace string) *harnessv1.McpServer {
			return servertest.Server("notes", servertest.Lines+"="+filepath.Join(workspace, "out"))
		}},
		{"ignored", `{name: mcp__notes__speak, arguments: {}}`, raw(servertest.RawHung)},
		{"deaf", `{name: mcp__notes__speak, arguments: {}}`, raw(servertest.RawDeaf)},
	}
	times := map[string][]time.Duration{}
	for b.Loop() {
		for _, k := range kinds {
			var servers []*harnessv1.McpServer
			workspace := b.TempDir()
			if k.server != nil {
				servers = append(servers, k.server(workspace))
			}
			times[k.name] = append(times[k.name], bed.interrupt(workspace, k.call, servers))
		}
	}
	for _, k := range kinds {
		b.Logf("%-9s %d interrupts, median %.0f ms, slowest %.0f ms", k.name, len(times[k.name]), millis(median(times[k.name])), millis(slowest(times[k.name])))
		if k.server != nil {
			b.ReportMetric(float64(median(times[k.name]))/float64(median(times["command"])), k.name+"/command")
		}
	}
	b.ReportMetric(millis(median(times["command"])), "command-ms")
	b.ReportMetric(0, "ns/op")
}

// bed is a mesh with a process for each role and one NATS server.
type bed struct {
	b    *testing.B
	m    *meshtest.Mesh
	runs int
}

// interrupt starts a run, interrupts it when its call hangs, and returns how long that took. Then it
// cancels the run.
func (d *bed) interrupt(workspace, call string, servers []*harnessv1.McpServer) time.Duration {
	d.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	d.runs++
	id := fmt.Sprintf("run%d", d.runs)
	script := d.m.Write(id+".yaml", "turns:\n  - {text: Looking., calls: ["+call+"]}\n")
	_, err := d.m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Do what the script contains."), Workspace: workspace,
		Agent:  &harnessv1.AgentSpec{Model: "script:" + script, Mcp: servers},
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}},
	}})
	must(d.b, err)
	stream, err := d.m.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: id})
	must(d.b, err)
	waittest.Eventually(d.b, "the call hangs", func() bool {
		data, _ := os.ReadFile(filepath.Join(workspace, "out"))
		return strings.HasSuffix(string(data), "hanging\n")
	})
	began := time.Now()
	_, err = d.m.Client().InterruptRun(ctx, &harnessv1.InterruptRunRequest{RunId: id})
	must(d.b, err)
	for {
		r, err := stream.Recv()
		must(d.b, err)
		if r.GetUpdate().GetEvent().GetRunInterrupted() != nil {
			break
		}
	}
	took := time.Since(began)
	_, err = d.m.Client().CancelRun(ctx, &harnessv1.CancelRunRequest{RunId: id})
	must(d.b, err)
	return took
}
