package judgement

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

var readyLine = regexp.MustCompile(`ready role=gateway addr=(\S+)`)

// command is harness serve with separate data.
func command(t *testing.T, data string, env, args []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), live.Harness, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--sync", "interval"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(data), "TMPDIR=" + os.TempDir(), "OPENAI_BASE_URL=" + live.ModelURL()}, env...)
	return cmd
}

// serve starts another process with every role, with variables and flags, and connects to it.
func serve(t *testing.T, env []string, args ...string) harnessv1.GatewayServiceClient {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	cmd := command(t, data, env, args)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, address := bufio.NewScanner(errs), ""
	var output []string
	for address == "" && lines.Scan() {
		output = append(output, lines.Text())
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-drained
		_ = cmd.Wait()
	})
	if address == "" {
		t.Fatalf("harness serve is not ready:\n%s", strings.Join(output, "\n"))
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return harnessv1.NewGatewayServiceClient(conn)
}

// at starts a run at a gateway and returns its result and its last state.
func at(t *testing.T, gateway harnessv1.GatewayServiceClient, r *live.Run, spec *harnessv1.RunSpec) (*harnessv1.HarnessResult, *harnessv1.Snapshot) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	if _, err := gateway.StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	result, err := waittest.Watch(ctx, gateway, "", r.ID, 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, func(*harnessv1.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	state, err := gateway.GetState(ctx, &harnessv1.GetStateRequest{RunId: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	return result, state.GetSnapshot()
}

// TestQualityAlways: a process that judges all runs judges one that turns it off, with the limits
// of its environment, and a run has the features of the file and records them.
func TestQualityAlways(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch purpose(req) {
		case "complexity":
			return complexity("SIMPLE", nil)
		case "verify":
			return verdict(0.1)
		}
		return finish("No.")
	})
	features := filepath.Join(t.TempDir(), "features.yaml")
	if err := os.WriteFile(features, []byte("features:\n  - {name: brief, share: 100, config: {stop: {max_turns: 7}}}\n  - {name: others, namespaces: [acme], config: {stop: {max_turns: 3}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := serve(t, []string{"HARNESS_RETRY_MAX_ATTEMPTS_CHAT=1"}, "--quality", "always", "--features", features)
	result, state := at(t, gateway, r, r.Spec(func(s *harnessv1.RunSpec) {
		s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(false), Model: s.GetAgent().GetModel()}
		s.Task = &harnessv1.Task{Kind: "chat"}
	}))
	if v := result.GetQuality(); v.GetAttempts() != 1 || !v.GetDegraded() || result.GetAccepted() {
		t.Errorf("the verdict is %v", v)
	}
	if got := state.GetFeatures(); len(got) != 1 || got[0] != "brief" || state.GetMaxTurns() != 7 {
		t.Errorf("features %q, %d turns", got, state.GetMaxTurns())
	}
}

// TestEnvironmentOutOfRange: thresholds out of order keep the gateway from starting, and the
// error names the variable.
func TestEnvironmentOutOfRange(t *testing.T) {
	t.Parallel()
	program.Rely(t)
	for _, env := range []string{"HARNESS_RETRY_GOOD_ENOUGH_SCORE=0.3", "HARNESS_RETRY_LOW_QUALITY_THRESHOLD=2", "HARNESS_RETRY_MAX_ATTEMPTS_SYNTHESIS=0"} {
		out, err := command(t, filepath.Join(t.TempDir(), "data"), []string{env}, nil).CombinedOutput()
		name, _, _ := strings.Cut(env, "=")
		if err == nil || !strings.Contains(string(out), name) {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
}
