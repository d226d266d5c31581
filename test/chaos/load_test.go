package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// calls is how many commands a run executes. Each appends its id to a file.
const calls = 10

// message is what a client sends to each run once.
const message = "Do you still work?"

// work is one run and what its clients have seen of it.
type work struct {
	run       runlog.Run
	workspace string

	// events are those that the watcher has received, by id, in order.
	events []string
	// resumed counts the steps that were put aside because three workers had died.
	resumed int
	// lost: the bus has lost records that the watcher or the run had.
	lost bool
	err  error
}

// script makes an agent execute the commands.
func script() string {
	var b strings.Builder
	b.WriteString("turns:\n")
	for i := 1; i <= calls; i++ {
		fmt.Fprintf(&b, "  - {text: 'Call %d.', calls: [{name: run_command, arguments: {command: 'echo id-%d >> out; sleep 0.05'}}]}\n", i, i)
	}
	b.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	b.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n") // after the message
	return b.String()
}

// clients start runs, send messages and watch.
type clients struct {
	t      *testing.T
	ctx    context.Context
	m      *meshtest.Mesh
	script string
	over   chan struct{} // closed: no more runs are started
	lanes  sync.WaitGroup

	mu  sync.Mutex
	all []*work
}

// start begins n lanes, each with one run after the other.
func (c *clients) start(n int) {
	for lane := range n {
		c.lanes.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-c.over:
					return
				case <-c.ctx.Done():
					return
				default:
				}
				w := &work{run: runlog.Run{Namespace: "default", ID: fmt.Sprintf("run-%d-%d", lane, i)}}
				if !c.startRun(w) {
					return
				}
				c.mu.Lock()
				c.all = append(c.all, w)
				c.mu.Unlock()
				c.follow(w)
			}
		})
	}
}

func (c *clients) startRun(w *work) bool {
	w.workspace = c.t.TempDir()
	_, err := waittest.Retry(c.ctx, func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
		return c.m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: w.run.ID, RequestId: w.run.ID, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Do what the script says."), Workspace: w.workspace, Agent: &harnessv1.AgentSpec{Model: "script:" + c.script},
			Config: &harnessv1.LoopConfig{
				Model: &harnessv1.ModelConfig{OutageRetry: durationpb.New(200 * time.Millisecond)},
				Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			},
		}})
	})
	if err != nil {
		c.t.Errorf("%s: start: %v", w.run, err)
	}
	return err == nil
}

// follow sends the message and watches until the run ends.
func (c *clients) follow(w *work) {
	_, err := waittest.Retry(c.ctx, func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
		return c.m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: w.run.ID, RequestId: "message", Input: &harnessv1.SendInputRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Content: content.Inline(message)},
		}})
	})
	if code := status.Code(err); code == codes.NotFound || code == codes.DataLoss {
		w.lost = true // is checked against what is stored
		return
	}
	if err != nil {
		w.err = fmt.Errorf("send a message: %w", err)
		return
	}
	for after := uint64(0); ; {
		result, err := waittest.Watch(c.ctx, c.m.Client(), w.run.Namespace, w.run.ID, after, harnessv1.WatchUntil_WATCH_UNTIL_END, func(e *harnessv1.Event) {
			w.events = append(w.events, e.GetId())
			after = e.GetVersion()
		})
		switch status.Code(err) {
		case codes.OK:
		case codes.DataLoss, codes.NotFound:
			w.lost = true
			return
		default:
			w.err = fmt.Errorf("watch: %w", err)
			return
		}
		if result.GetReason().GetKind() != "poison" || !strings.Contains(result.GetReason().GetMessage(), "workers died") {
			if result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
				w.err = fmt.Errorf("ended as %v", result)
			}
			return
		}
		w.resumed++
		_, err = waittest.Retry(c.ctx, func(ctx context.Context) (*harnessv1.ResumeRunResponse, error) {
			return c.m.Client().ResumeRun(ctx, &harnessv1.ResumeRunRequest{RunId: w.run.ID, RequestId: fmt.Sprint("resume-", w.resumed)})
		})
		if err != nil {
			w.err = fmt.Errorf("resume: %w", err)
			return
		}
	}
}

// lines returns how often each command has had its effect.
func (w *work) lines(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.workspace, "out"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	all := map[string]int{}
	for id := range strings.FieldsSeq(string(text)) {
		all[id]++
	}
	return all
}
