package turnserver

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

const (
	// outputPause is the time between two pieces of the output of a command.
	outputPause = 100 * time.Millisecond
	// outputWait is how long a tool host waits for output.
	outputWait = 20 * time.Second
	// outputRetry is the pause after a request to a tool host that failed.
	outputRetry = time.Second
)

// showOutput publishes the output of a call's command, or the progress of a tool's server, while the call runs.
// A piece that is lost is lost: the result has the output. The caller calls stop when the call
// has ended.
func (t *execution) showOutput(ctx context.Context, a turn.SendCall) (stop func()) {
	if a.Call.Level == sandbox.Auto && !t.state.Requests().OfServer(a.Call) {
		return func() {} // no command, and no tool of a server
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.followOutput(ctx, a)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (t *execution) followOutput(ctx context.Context, a turn.SendCall) {
	request := &harnessv1.ReadCallOutputRequest{
		Namespace: t.run.Namespace, RunId: t.run.ID, CallId: a.Call.HostID(), LedgerId: a.Ledger,
		FirstSequence: t.state.Snapshot.GetFirstSequence(), Wait: durationpb.New(outputWait),
	}
	for pause := outputPause; ; {
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return
		}
		r, err := t.server.cfg.ToolHost.ReadCallOutput(ctx, request)
		switch pause = outputPause; {
		case status.Code(err) == codes.Unimplemented:
			return // an older host
		case err != nil:
			pause = outputRetry
		case r.GetText() != "":
			request.Offset = r.GetOffset() + uint64(len(r.GetText()))
			t.delta(&harnessv1.Delta{TurnNumber: t.progress.Number, Attempt: t.progress.Attempts, ToolOutput: &harnessv1.ToolOutput{
				CallId: a.Call.ID, Offset: r.GetOffset(), Text: r.GetText(),
			}})
		}
	}
}
