package follower

import (
	"context"
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

// errServerAway is returned while no server has the address of the one that replaced the process.
var errServerAway = status.Error(codes.Unavailable, "the server has ended")

// rejoin connects again to the background process, and starts it if it died. If it is
// another process now and the run was at work, the run is resumed: its client asks for that by
// following it. After a stop it returns follow.ErrStopped.
func (f *Follower) rejoin(ctx context.Context, a *console.Console, resume bool) (harnessv1.GatewayServiceClient, string, error) {
	ctx, cancel := context.WithTimeout(ctx, rejoinTime)
	defer cancel()
	former := f.Session.Process
	if former == nil { // a server replaced the process since: its client connects again by itself
		return f.Session.Client, "", errServerAway
	}
	if daemon.EndOf(f.Target.Data, former.PID) == daemon.Stopped {
		return nil, "", follow.ErrStopped
	}
	session, err := f.Target.Connect(ctx, a, backend.Drive)
	if err != nil {
		return nil, "", err
	}
	target.Disconnect(ctx, a, f.Session)
	f.Session = session
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
	a.Report("the background process ended; another one continues the run")
	if answer.GetAlreadyRunning() {
		id = ""
	}
	return session.Client, id, nil
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
