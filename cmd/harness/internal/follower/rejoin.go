package follower

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// rejoinTime bounds one try to connect to the background process again.
const rejoinTime = 40 * time.Second

// serverTime is how long a client waits for a server that has ended to start again before it starts the
// background process.
const serverTime = 5 * time.Second

// errServerAway is returned while a server that has ended may start again.
var errServerAway = status.Error(codes.Unavailable, "the server has ended")

// rejoin connects again to the process that has the data directory, and starts the background process if
// none has. If it is another process now and the run was at work, the run is resumed: its client asks for
// that by following it. After a stop of the background process it returns follow.ErrStopped.
func (f *Follower) rejoin(ctx context.Context, a *console.Console, resume bool) (_ harnessv1.GatewayServiceClient, sent string, err error) {
	ctx, cancel := context.WithTimeout(ctx, rejoinTime)
	defer cancel()
	former := cmp.Or(f.former, f.Session.Process)
	if daemon.EndOf(f.Target.Data, former.PID) == daemon.Stopped {
		return nil, "", follow.ErrStopped
	}
	if f.serverMayReturn() {
		return nil, "", errServerAway
	}
	session, err := f.Target.Connect(ctx, a, backend.Drive)
	if err != nil { // such as a full disk: the run waits, and so does its terminal
		return nil, "", status.Error(codes.Unavailable, console.Message(err))
	}
	target.Disconnect(ctx, a, f.Session)
	f.Session, f.lost, f.former = session, time.Time{}, former
	defer func() {
		if err == nil {
			f.former = nil
		}
	}()
	if session.Process == nil || session.Process.PID == former.PID {
		return session.Client, "", nil
	}
	if daemon.EndOf(f.Target.Data, former.PID) == daemon.Stopped {
		return nil, "", follow.ErrStopped // another client has started it since
	}
	if daemon.EndOf(f.Target.Data, former.PID) == daemon.Replaced {
		return session.Client, "", nil // it continues the runs that were at work
	}
	now, err := f.Current(ctx)
	if err != nil || !resume || !works(now) {
		return session.Client, "", err
	}
	id := follow.NewID()
	answer, err := session.Client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{Namespace: f.Target.Namespace, RunId: f.Run, RequestId: id})
	if fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED) {
		return session.Client, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	who := "the background process"
	if !former.Background {
		who = "the process " + console.OneLine(former.Command)
	}
	a.Report("%s ended; another one continues the run", who)
	if answer.GetAlreadyRunning() {
		id = ""
	}
	return session.Client, id, nil
}

// serverMayReturn reports whether the directory has no process since less than serverTime, and was a server's.
func (f *Follower) serverMayReturn() bool {
	if !strings.HasSuffix(f.Session.Process.Command, " serve") || backend.Held(f.Target.Data) {
		return false
	}
	if f.lost.IsZero() {
		f.lost = time.Now()
	}
	return time.Since(f.lost) < serverTime
}

// works reports whether a run was at work when its process ended: it is RUNNING, parked by
// the start of the next process, or parked for sub-agents, any of which that may have parked. A resume
// has no effect on those that wait for an answer.
func works(now *harnessv1.GetRunResponse) bool {
	run := now.GetRun()
	if run.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
		return run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING
	}
	reason := run.GetReason()
	return reason.GetKind() == runstate.KindAgent || reason.GetKind() == "interrupted" && reason.GetMessage() == backend.ProcessEnded
}
