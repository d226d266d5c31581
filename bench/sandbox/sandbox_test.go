//go:build linux

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// scenario runs a command at each level in turns.
type scenario struct {
	*toolhostserver.Server
	b         *testing.B
	workspace string
	config    *harnessv1.SandboxConfig
	calls     int
	times     map[harnessv1.SandboxLevel][]time.Duration
}

func newScenario(b *testing.B, config *harnessv1.SandboxConfig) *scenario {
	b.Helper()
	server, err := toolhostserver.New(toolhostserver.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			b.Log(err)
		}
	})
	return &scenario{Server: server, b: b, workspace: b.TempDir(), config: config, times: map[harnessv1.SandboxLevel][]time.Duration{}}
}

// levels returns those that this machine has, off first.
func (s *scenario) levels() []harnessv1.SandboxLevel {
	described, err := s.DescribeHost(s.b.Context(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		s.b.Fatal(err)
	}
	var all []harnessv1.SandboxLevel
	for level := sandbox.Off; level <= described.GetSandbox().GetLevel(); level++ {
		all = append(all, level)
	}
	return all
}

// run runs a command at a level and returns how long it took.
func (s *scenario) run(level harnessv1.SandboxLevel, line string) time.Duration {
	s.calls++
	arguments, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		s.b.Fatal(err)
	}
	request := &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", CallId: fmt.Sprint(s.calls), FirstSequence: 1, Tool: tools.RunCommand, Arguments: string(arguments), Workspace: s.workspace,
		Timeout: durationpb.New(5 * time.Minute), Confinement: &harnessv1.Confinement{Level: level, Config: s.config},
	}
	start := time.Now()
	response, err := s.ExecuteTool(s.b.Context(), request)
	took := time.Since(start)
	if err != nil {
		s.b.Fatal(err)
	}
	if response.GetIsError() || response.GetSandboxLevel() != level {
		s.b.Fatalf("at %s: %s", sandbox.Name(response.GetSandboxLevel()), response.GetResult())
	}
	return took
}

// report reports the medians and how they compare with off.
func (s *scenario) report() {
	s.b.ReportMetric(0, "ns/op")
	off := median(s.times[sandbox.Off])
	s.b.ReportMetric(milliseconds(off), "off-ms")
	for _, level := range []harnessv1.SandboxLevel{sandbox.Kernel, sandbox.Full} {
		if len(s.times[level]) == 0 {
			continue
		}
		m, name := median(s.times[level]), sandbox.Name(level)
		s.b.ReportMetric(milliseconds(m), name+"-ms")
		s.b.ReportMetric(float64(m)/float64(off), name+"/off")
		s.b.ReportMetric(milliseconds(m-off), name+"-off-ms")
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func BenchmarkTrue(b *testing.B) {
	s := newScenario(b, nil)
	levels := s.levels()
	for _, level := range levels {
		s.run(level, "true") // makes the folders of the run
	}
	for b.Loop() {
		for _, level := range levels {
			s.times[level] = append(s.times[level], s.run(level, "true"))
		}
	}
	s.report()
}

// BenchmarkCompile changes a package and builds it and those that depend on it, with caches
// that contain the rest. With -short it is a small package.
func BenchmarkCompile(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	changed, built := "pkg/runstate", "./pkg/executor"
	if testing.Short() {
		changed, built = "pkg/workflow", "./pkg/workflow"
	}
	s := newScenario(b, &harnessv1.SandboxConfig{Read: []string{root}})
	build := fmt.Sprintf("workspace=$PWD; cd %s && go build -overlay \"$workspace/overlay\" %s", root, built)
	began := time.Now().UnixNano() // no earlier compilation has seen it
	levels := s.levels()
	for n := -1; n < 0 || b.Loop(); n++ {
		for _, level := range levels {
			s.change(root, changed, fmt.Sprintf("%s-%d-%d", sandbox.Name(level), began, n))
			if took := s.run(level, build); n >= 0 { // the first one warms the caches
				s.times[level] = append(s.times[level], took)
			}
		}
	}
	s.report()
}

// change adds a file to a package that no earlier compilation has seen.
func (s *scenario) change(root, pkg, name string) {
	source := filepath.Join(s.workspace, "added.go")
	if err := os.WriteFile(source, fmt.Appendf(nil, "package %s\n\nconst Added = %q\n", filepath.Base(pkg), name), 0o600); err != nil {
		s.b.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, pkg, "added.go"): source}})
	if err != nil {
		s.b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.workspace, "overlay"), overlay, 0o600); err != nil {
		s.b.Fatal(err)
	}
}
