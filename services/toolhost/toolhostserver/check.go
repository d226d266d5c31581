package toolhostserver

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// checkMark begins the ledger keys of checks: commands of the harness itself. No
// key of a call begins so, because no namespace is empty. Behind it stands the key
// that a call with the check's key as its id would have.
const checkMark = "\x00"

func isCheck(key string) bool { return strings.HasPrefix(key, checkMark) }

// lookBefore says what is known of a call or check that is to begin; mu is held.
// A check that was cancelled before it began lies under a call's tombstone: who
// cancels something unknown cannot say which of the two it is.
func (s *Server) lookBefore(key string) (known, error) {
	k, err := s.look(key)
	if err != nil || k.state != toolhost.Absent || !isCheck(key) {
		return k, err
	}
	if k, err := s.look(strings.TrimPrefix(key, checkMark)); err != nil || k.state == toolhost.Cancelled {
		return k, err
	}
	return known{}, nil
}

// withChecks puts the checks that are known into the place of the calls with
// their keys, which are nothing else; mu is held. Should there be a call with the
// key of a check after all, both are meant.
func (s *Server) withChecks(calls []target) ([]target, error) {
	targets := make([]target, 0, len(calls))
	for _, t := range calls {
		check, err := s.look(checkMark + t.key)
		if err != nil {
			return nil, err
		}
		if check.state != toolhost.Absent {
			targets = append(targets, target{id: t.id, key: checkMark + t.key})
			k, err := s.look(t.key)
			if err != nil {
				return nil, err
			}
			if k.state == toolhost.Absent {
				continue
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// CheckCommand runs a command of the harness once. What it changes does not count
// among the run's changes. Responses are shared and must not be changed.
func (s *Server) CheckCommand(ctx context.Context, req *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
	failpoint.Hit(role, "received")
	w, err := s.checkWork(req)
	if err != nil {
		return nil, err
	}
	resp, err := s.answer(ctx, w)
	if err != nil {
		return nil, err
	}
	return resp.(*harnessv1.CheckCommandResponse), nil
}

// checkWork is the work that a request asks for.
func (s *Server) checkWork(req *harnessv1.CheckCommandRequest) (*work, error) {
	if err := checkName("key", req.GetKey()); err != nil {
		return nil, err
	}
	key, err := callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), req.GetKey())
	if err != nil {
		return nil, err
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if err := checkTimeout(req.GetTimeout()); err != nil {
		return nil, err
	}
	switch {
	case req.GetCommand() == "" || strings.ContainsRune(req.GetCommand(), 0):
		return nil, fault.Invalid("command", "has to be a command line without NUL")
	case len(req.GetInput()) > toolhost.CheckInputBytes:
		return nil, fault.Invalid("input", "has more than 4 MiB")
	}
	return &work{
		key: checkMark + key, namespace: req.GetNamespace(), runID: req.GetRunId(), id: req.GetKey(),
		refuse:  func() result { return nil },
		perform: func(ctx context.Context) product { return s.check(ctx, req) },
	}, nil
}

// check runs a command within its time limit.
func (s *Server) check(ctx context.Context, req *harnessv1.CheckCommandRequest) (p product) {
	resp := &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE}
	p.result = resp
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a check panicked", "panic", r, "stack", string(debug.Stack()))
			resp.Error = "It failed for a reason that lies with the tool host."
		}
	}()
	limit := s.config.Limits.CallTimeout(req.GetTimeout().AsDuration(), 0)
	ctx, release := context.WithTimeoutCause(ctx, limit, errTimedOut)
	defer release()
	w, err := openWorkspace(req.GetWorkspace())
	if err != nil {
		resp.Error = "The workspace cannot be used: " + plain(err) + "."
		return p
	}
	defer w.close()

	output := toolhost.CheckExcerpt(toolhost.CheckOutputBytes)
	complaints := toolhost.CheckExcerpt(toolhost.CheckErrorBytes)
	end, err := execute(ctx, order{
		command: req.GetCommand(), dir: w.dir, environ: s.environ(w), mark: s.life.mark(),
		input: req.GetInput(), output: output, errors: complaints,
	})
	resp.Output = toolhost.CheckText(output, toolhost.CheckOutputBytes)
	resp.ErrorOutput = toolhost.CheckText(complaints, toolhost.CheckErrorBytes)
	stopped := end.Stopped
	switch {
	case err != nil:
		s.log.Error("a check's supervisor failed", "error", err)
		resp.Error = "Its supervisor failed. Everything that was found of it was killed; how far it had come is not known."
		stopped = ctx.Err() != nil
	case end.Error != "":
		resp.Error = "It could not be started: " + end.Error + "."
	default:
		resp.ExitCode = int32(end.Code)
	}
	if stopped {
		p.interrupted = !errors.Is(context.Cause(ctx), errTimedOut)
		resp.ExitCode = 124 // as timeout(1) has it
	}
	return p
}
