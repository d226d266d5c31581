package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// continuation is the part of the verbs that answer a call: whether the run continues.
type continuation struct {
	Resume bool `negatable:"" help:"Continue the run after the answer and follow it. Default: on a terminal."`
}

// resumes reports whether the run is continued and followed.
func (r *continuation) resumes(a *app) bool {
	if a.given["resume"] || a.inherited["resume"] {
		return r.Resume
	}
	return a.interactive()
}

// answered sends an answer to a call and, if the run is to continue, follows it.
func (o *oneRun) answered(ctx context.Context, a *app, f *runFollower, call string, resumes bool, request *harnessv1.SendInputRequest) (int, error) {
	request.Namespace, request.RunId, request.RequestId = o.Namespace, o.RunID, follow.NewID()
	if resumes {
		current, err := f.current(ctx)
		if err != nil {
			return follow.ExitError, err
		}
		f.after, f.sent = current.GetRun().GetVersion(), []string{request.GetRequestId()}
	}
	if _, err := f.session.Client.SendInput(ctx, request); err != nil {
		return follow.ExitError, err
	}
	if resumes {
		return f.follow(ctx, a)
	}
	o.stored(a, f.session, "the answer to "+call+" is stored")
	return follow.ExitDone, nil
}

// open connects for an answer: with what the run needs to continue if it is continued.
func (o *oneRun) open(ctx context.Context, a *app, resumes bool) (*runFollower, error) {
	f := &runFollower{target: &o.target, run: o.RunID, output: "text", render: "auto"}
	if resumes {
		_, err := f.drive(ctx, a)
		o.RunID = f.run
		return f, err
	}
	var err error
	f.session, err = o.connect(ctx, a, backend.Store)
	f.run = o.RunID
	return f, err
}

// approveCmd answers an approval request.
type approveCmd struct {
	oneRun       `embed:""`
	Call         string `arg:"" optional:"" help:"Id of the call; optional if exactly one waits."`
	Yes          bool   `short:"y" help:"Approve it once without a prompt. Default without a terminal."`
	Always       bool   `help:"Also approve all later calls of the tool in this run."`
	Deny         bool   `help:"Deny the call."`
	Reason       string `placeholder:"WHY" help:"Reason for a denial, or what to do instead, which the model receives."`
	Digest       string `placeholder:"DIGEST" help:"Approve it once if it has this digest, of which 8 characters are enough: refuse the answer if the call is not the one that was shown."`
	continuation `embed:""`
}

// digestForm is the form of --digest.
var digestForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{8,64}$`) })

// verdict returns the decision that the flags make, unset if they make none.
func (c *approveCmd) verdict(a *app) (v follow.Verdict, err error) {
	switch {
	case c.Always && c.Deny:
		return v, errors.New("--always and --deny are mutually exclusive: use one of them")
	case c.Yes && c.Deny:
		return v, errors.New("--yes and --deny are mutually exclusive: use one of them")
	case c.Digest != "" && !digestForm().MatchString(c.Digest):
		return v, fmt.Errorf("--digest: %q: expected the digest that harness show RUN prints, 8 to 64 hexadecimal digits", render.Short(c.Digest, 70))
	case c.Reason != "" && !c.Deny && a.given["reason"]:
		return v, errors.New("--reason: only --deny takes a reason")
	case c.Always:
		v.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	case c.Deny:
		v.Decision, v.Reason = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, c.Reason
	case c.Yes, c.Digest != "", !a.interactive():
		v.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	}
	return v, nil
}

func (c *approveCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return follow.ExitError, err
	}
	v, err := c.verdict(a)
	if err != nil {
		return follow.ExitError, err
	}
	resumes := c.resumes(a)
	f, err := c.open(ctx, a, resumes)
	defer func() { a.disconnect(ctx, f.session) }()
	if err != nil {
		return before(err)
	}
	call, err := c.pick(ctx, a, f.session)
	if err != nil {
		return follow.ExitError, err
	}
	switch {
	case v.Decision != 0 || call.GetTool() == "": // one that is announced cannot be shown
		c.print(a, call)
	default:
		if v, err = a.prompt(ctx).Decide(ctx, call, a.signals); err != nil {
			a.printNote("%s: %s", err, answering(c.RunID, call, c.words(a)))
			return follow.ExitParked, nil
		}
	}
	if v.Decision == 0 {
		v.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	}
	return c.answered(ctx, a, f, c.Call, resumes, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: v.Approval(call)}})
}

// pick returns the call that the answer is to, with all of its arguments.
func (c *approveCmd) pick(ctx context.Context, a *app, s *backend.Session) (*harnessv1.PendingCall, error) {
	pending, err := c.pending(ctx, s)
	if err != nil {
		return nil, err
	}
	call, err := c.choose(a, pending, c.Call, runstate.KindApproval, runstate.KindReview)
	if err != nil {
		return nil, err
	}
	c.Call = call.GetCallId()
	switch {
	case !strings.HasPrefix(call.GetPreview().GetDigest(), c.Digest):
		return nil, fmt.Errorf("--digest: call %s is not the one that was shown: harness show %s%s shows it", c.Call, c.RunID, c.words(a))
	case c.Always && call.GetKind() == runstate.KindReview:
		return nil, fmt.Errorf("--always: call %s waits for a review, which applies to this call only", c.Call)
	case c.Always && call.GetOnlyOnce():
		return nil, fmt.Errorf("--always: call %s leaves the sandbox, which is allowed for one call at a time: leave out --always", c.Call)
	}
	return backend.WholeCall(ctx, s.Client, c.Namespace, c.RunID, call), nil
}

// print writes what the answer is about.
func (c *approveCmd) print(a *app, call *harnessv1.PendingCall) {
	if call.GetTool() == "" {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s (call %s):\n", render.Clean(call.GetTool()), render.Clean(call.GetCallId()))
	style := a.style(a.err)
	if style.Width > 0 {
		style.Width -= 2
	}
	for _, line := range style.CallLines(call) {
		text.WriteString("  " + line + "\n")
	}
	fmt.Fprint(a.err, text.String())
}
