package judgement

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The state of the work can be read from outside while the model is still writing, and
// its events have arrived by then; after a kill of the whole mesh it is the same as
// before, and the run continues with it.
func TestItemsAreReadableDuringTheRunAndAfterAKill(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	r := live.Prepare(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		switch n {
		case 0:
			return live.Calls(live.Call("work_item_add", live.Args{"title": "Report", "role": "DELIVERABLE"}), itemsAdd("Tidy up"))
		case 1:
			return live.Calls(itemsArtifact("w1", "Draft", "DELIVERABLE"), itemsSet("w1", "DONE"))
		case 2:
			close(asked)
			<-answer
			return live.Message("nobody hears this")
		case 3:
			return live.Calls(itemsList())
		case 4:
			return live.Calls(itemsSet("w2", "DONE"))
		}
		return live.Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*live.Limit)
	defer cancel()
	data := t.TempDir()
	client, kill := itemsMesh(ctx, t, data)
	if _, err := client.StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(itemsOn)}); err != nil {
		t.Fatal(err)
	}
	stream, err := client.WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID, NoDeltas: true})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	rewatched := &live.Transcript{Run: r}
	for len(rewatched.Names("work_item.changed")) < 4 || len(rewatched.Names("deliverables.updated")) < 1 {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("before all changes have arrived: %v: %v", itemsChanges(rewatched), err)
		}
		if e := m.GetUpdate().GetEvent(); e != nil {
			rewatched.Events = append(rewatched.Events, e)
		}
	}
	itemsEqual(t, "live", itemsChanges(rewatched), "added w1 PENDING 0/1", "added w2 PENDING 0/2", "artifact w1 PENDING 0/2", "updated w1 DONE 1/2")
	want := []string{"w1 DONE MEDIUM DELIVERABLE", "w2 PENDING MEDIUM WORKING"}
	state := func() *harnessv1.Snapshot {
		got, err := client.GetState(ctx, &harnessv1.GetStateRequest{RunId: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetSnapshot()
	}
	itemsEqual(t, "the state during the run", itemsLedger(state()), want...)

	kill()
	client, _ = itemsMesh(ctx, t, data)
	itemsEqual(t, "the state after the kill", itemsLedger(state()), want...)
	if got := itemsFind(t, state(), "w1").GetArtifact().GetInline(); got != "Draft" {
		t.Errorf("the artifact after the kill is %q", got)
	}
	close(answer)
	stream, err = client.WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID, Until: harnessv1.WatchUntil_WATCH_UNTIL_END, NoDeltas: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &live.Transcript{Run: r}
	for s.Result == nil {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		s.Result = m.GetUpdate().GetResult()
	}
	s.Want("DONE agent_done accepted")
	if d := s.Result.GetDeliverables(); len(d) != 1 || d[0].GetContent().GetInline() != "Draft" {
		t.Errorf("deliverables %v", d)
	}
}

// itemsMesh starts a separate mesh on stored data. kill ends it like a power failure.
func itemsMesh(ctx context.Context, t *testing.T, data string) (client harnessv1.GatewayServiceClient, kill func()) {
	t.Helper()
	cmd := exec.Command(live.Harness, "serve", "--data", data, "--listen", "127.0.0.1:0", "--sync", "interval")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "TMPDIR=" + os.TempDir(), "OPENAI_BASE_URL=" + live.ModelURL()}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	gatewayLine := regexp.MustCompile(`ready role=gateway addr=(\S+)`)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			if m := gatewayLine.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		_ = cmd.Wait()
	}()
	kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	select {
	case at := <-ready:
		conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(data))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return harnessv1.NewGatewayServiceClient(conn), kill
	case <-ended:
		t.Fatal("the mesh ended before it was ready")
	case <-ctx.Done():
		t.Fatal("the mesh is not ready in time")
	}
	return nil, nil
}
