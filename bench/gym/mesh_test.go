package gym

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// The models, and the mesh that all runs share: the shipped binary, one process with
// every role.
var (
	models  *modelServer
	gateway harnessv1.GatewayServiceClient
)

func TestMain(m *testing.M) {
	servertest.Enter()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "harness-gym")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		stop, err := startProcess(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stop()
		return m.Run()
	}())
}

var readyLine = regexp.MustCompile(`ready role=gateway addr=(\S+)`)

// startProcess starts the program and connects to it.
func startProcess(dir string) (stop func(), err error) {
	harness, err := program.Harness()
	if err != nil {
		return nil, err
	}
	models = startModels()
	cmd := exec.Command(harness, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--sync", "interval")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "OPENAI_BASE_URL=" + models.http.BaseURL()}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(errs)
	var said []string
	address := ""
	for address == "" && lines.Scan() {
		said = append(said, lines.Text())
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		_ = cmd.Process.Kill()
		return nil, errors.Join(cmd.Wait(), errors.New("harness serve is not ready; it said:\n"+strings.Join(said, "\n")))
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
			if os.Getenv("HARNESS_TEST_STDERR") != "" {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(filepath.Join(dir, "data")))
	if err != nil {
		return nil, err
	}
	gateway = harnessv1.NewGatewayServiceClient(conn)
	return func() {
		_ = conn.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		reading.Wait()
		_ = cmd.Wait()
		models.http.Close()
	}, nil
}

// patience is far more than any run here takes.
const patience = 2 * time.Minute

// meshRun is a run in the harness.
type meshRun struct {
	t      *testing.T
	id     string
	events []*harnessv1.Event
	result *harnessv1.HarnessResult
}

// meshed works on a scenario in the harness until the run has ended. While it waits
// for its user, attend is the user. edits change what the run is started with.
func meshed(t *testing.T, s *scenario, id, dir string, edits []func(*harnessv1.RunSpec)) *meshRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spec := &harnessv1.RunSpec{
		Goal: content.Inline(s.goal), Workspace: dir,
		Agent: &harnessv1.AgentSpec{Model: "openai:" + id},
		Config: &harnessv1.LoopConfig{
			Stop:  &harnessv1.StopConfig{MaxTurns: proto.Uint32(maxTurns)},
			Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
		},
	}
	for _, edit := range edits {
		edit(spec)
	}
	r := &meshRun{t: t, id: id}
	if _, err := gateway.StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	r.follow(ctx)
	if s.attend != nil {
		if r.result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
			t.Fatalf("status = %s, want PARKED for the user", r.result.GetStatus())
		}
		s.attend(ctx, r)
		for r.result.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED {
			r.follow(ctx)
		}
	}
	return r
}

// follow waits until the run is parked or has ended, after the known version.
func (r *meshRun) follow(ctx context.Context) {
	r.t.Helper()
	var after uint64
	if n := len(r.events); n > 0 {
		after = r.events[n-1].GetVersion()
	}
	stream, err := gateway.WatchRun(ctx, &harnessv1.WatchRunRequest{
		RunId: r.id, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST, AfterVersion: after, NoDeltas: true, Tree: proto.Bool(false),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.t.Fatalf("watch %s: %v", r.id, err)
		}
		switch u := m.GetUpdate().GetUpdate().(type) {
		case *harnessv1.RunUpdate_Event:
			r.events = append(r.events, u.Event)
		case *harnessv1.RunUpdate_Result:
			r.result = u.Result
		}
	}
}

// send gives the run an input.
func (r *meshRun) send(ctx context.Context, req *harnessv1.SendInputRequest) {
	r.t.Helper()
	req.RunId = r.id
	if _, err := gateway.SendInput(ctx, req); err != nil {
		r.t.Fatal(err)
	}
}

// verdict is status, reason and whether the work was accepted, such as "DONE
// agent_done accepted".
func (r *meshRun) verdict() string {
	v := strings.TrimPrefix(r.result.GetStatus().String(), "RUN_STATUS_") + " " + r.result.GetReason().GetKind()
	if r.result.GetAccepted() {
		v += " accepted"
	}
	return v
}

// made is what came of the run, in a world.
func (r *meshRun) made(w *world) {
	w.summary = content.Text(r.result.GetSummary())
	for _, d := range r.result.GetDeliverables() {
		w.artifacts[d.GetItemId()] = content.Text(d.GetContent())
	}
}
