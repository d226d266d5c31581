package turn

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
)

var (
	old   = flag.String("old", "", "a program of another commit to compare with, built with -trimpath -ldflags '-s -w'; empty: the program itself")
	pairs = flag.Int("pairs", 1, "how often each of the two programs is measured")
)

// sample is what a program needs for a number of runs.
type sample struct{ time, cpu, bytes float64 }

// BenchmarkBuilds compares the program with one of another commit (-old). Both run the
// same script in alternation, each time in a new process with all roles and an empty data
// directory: one file is read in each turn, and no other feature is used. Ratios are new
// to old, the median of the pairs.
func BenchmarkBuilds(b *testing.B) {
	program := build(b)
	other := *old
	if other == "" {
		other = program
	}
	for _, scenario := range []struct{ runs, turns int }{{1, 300}, {64, 30}} {
		b.Run(fmt.Sprintf("runs=%d", scenario.runs), func(b *testing.B) {
			turns := scenario.turns
			if *old == "" {
				turns = 10
			}
			var before, after []sample
			for pair := range *pairs * b.N {
				sides := []func(){
					func() { before = append(before, measureRuns(b, other, scenario.runs, turns)) },
					func() { after = append(after, measureRuns(b, program, scenario.runs, turns)) },
				}
				if pair%2 == 1 {
					slices.Reverse(sides)
				}
				for _, side := range sides {
					side()
				}
			}
			b.ReportMetric(0, "ns/op")
			for _, figure := range []struct {
				name  string
				value func(sample) float64
			}{
				{"time-µs", func(s sample) float64 { return s.time }},
				{"cpu-µs", func(s sample) float64 { return s.cpu }},
				{"bytes", func(s sample) float64 { return s.bytes }},
			} {
				var from, to, ratios []float64
				for i := range before {
					from, to = append(from, figure.value(before[i])), append(to, figure.value(after[i]))
					ratios = append(ratios, figure.value(after[i])/figure.value(before[i]))
				}
				b.ReportMetric(median(ratios), figure.name+"-new/old")
				b.Logf("%-8s a turn: old %6.0f (%.0f to %.0f), new %6.0f (%.0f to %.0f), new/old %.2f (%.2f to %.2f)", figure.name,
					median(from), slices.Min(from), slices.Max(from), median(to), slices.Min(to), slices.Max(to),
					median(ratios), slices.Min(ratios), slices.Max(ratios))
			}
		})
	}
}

// measureRuns starts a program, ends runs of some turns each with it, and returns what a
// turn took.
func measureRuns(b *testing.B, program string, runs, turns int) sample {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir := b.TempDir()
	data, scripts := filepath.Join(dir, "data"), filepath.Join(dir, "scripts")
	must(b, os.Mkdir(scripts, 0o700))
	args := []string{"serve", "--data", data, "--sync", "interval", "--listen", "127.0.0.1:0"}
	if help, _ := exec.CommandContext(ctx, program, "serve", "--help").Output(); strings.Contains(string(help), "--scripts") {
		args = append(args, "--scripts", scripts)
	}
	serve := exec.CommandContext(ctx, program, args...)
	serve.Env = append(os.Environ(), "HARNESS_LOG_LEVEL=error")
	stderr, err := serve.StderrPipe()
	must(b, err)
	must(b, serve.Start())
	address := ""
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "ready role=gateway addr="); ok {
			address = after
		}
	}
	rest := make(chan struct{})
	go func() { // the pipe must not fill up
		defer close(rest)
		for lines.Scan() {
		}
	}()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(data))
	must(b, err)
	gateway := harnessv1.NewGatewayServiceClient(conn)
	spec := reads(b, dir, scripts, turns)
	// The first run starts what a process starts once.
	finish(ctx, b, gateway, "warm", 1, spec)
	cpu, start := cpuOf(b, serve.Process.Pid), time.Now()
	finish(ctx, b, gateway, "bench", runs, spec)
	s := sample{time: float64(time.Since(start).Microseconds()), cpu: float64((cpuOf(b, serve.Process.Pid) - cpu).Microseconds())}
	must(b, conn.Close())
	must(b, serve.Process.Signal(syscall.SIGTERM))
	<-rest
	must(b, serve.Wait())
	for _, e := range readLog(ctx, b, data, runlog.Run{Namespace: "bench", ID: "r0"}) {
		s.bytes += float64(proto.Size(e.Record)) * float64(runs)
	}
	count := float64(runs * turns)
	return sample{time: s.time / count, cpu: s.cpu / count, bytes: s.bytes / count}
}

// finish starts runs in a namespace and waits for their ends.
func finish(ctx context.Context, b *testing.B, gateway harnessv1.GatewayServiceClient, namespace string, runs int, spec *harnessv1.RunSpec) {
	b.Helper()
	for i := range runs {
		_, err := gateway.StartRun(ctx, &harnessv1.StartRunRequest{Namespace: namespace, RunId: fmt.Sprintf("r%d", i), Spec: spec})
		must(b, err)
	}
	for {
		listed, err := gateway.ListRuns(ctx, &harnessv1.ListRunsRequest{Namespace: namespace, PageSize: 1000})
		must(b, err)
		ended := 0
		for _, r := range listed.GetRuns() {
			switch r.GetStatus() {
			case harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED:
			case harnessv1.RunStatus_RUN_STATUS_DONE:
				ended++
			default:
				b.Fatalf("run %s: %v", r.GetRunId(), r)
			}
		}
		if ended == runs {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// reads returns the spec of a run that reads the same file in each turn.
func reads(b *testing.B, dir, scripts string, turns int) *harnessv1.RunSpec {
	b.Helper()
	workspace := filepath.Join(dir, "work")
	must(b, os.Mkdir(workspace, 0o700))
	must(b, os.WriteFile(filepath.Join(workspace, "a.txt"), []byte(strings.Repeat("what the file says\n", fileSize/19)), 0o600))
	var yaml strings.Builder
	yaml.WriteString("turns:\n")
	for range turns {
		yaml.WriteString("  - {text: Looking., calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input_tokens: 900, output_tokens: 20}}\n")
	}
	yaml.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}], usage: {input_tokens: 900, output_tokens: 20}}\n")
	script := filepath.Join(scripts, "reads.yaml")
	must(b, os.WriteFile(script, []byte(yaml.String()), 0o600))
	const endless = 1_000_000
	return &harnessv1.RunSpec{
		Goal:      content.Inline("Read the file."),
		Agent:     &harnessv1.AgentSpec{Model: "script:" + script},
		Workspace: workspace,
		Config: &harnessv1.LoopConfig{
			Stop:     &harnessv1.StopConfig{MaxTurns: proto.Uint32(endless)},
			Budgets:  &harnessv1.Budgets{ToolCalls: proto.Uint32(endless)},
			Tools:    &harnessv1.ToolConfig{Timeout: durationpb.New(time.Hour), Yolo: proto.Bool(true)},
			Stall:    &harnessv1.StallConfig{Enabled: proto.Bool(false)},
			DoomLoop: &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)},
		},
	}
}

// cpuOf returns the user and system time of a process; 0 if the kernel does not report it.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	const tick = 10 * time.Millisecond // of /proc on every Linux that Go knows
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.ParseInt(fields[11], 10, 64)
	must(b, err)
	system, err := strconv.ParseInt(fields[12], 10, 64)
	must(b, err)
	return time.Duration(user+system) * tick
}
