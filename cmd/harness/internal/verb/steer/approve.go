package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// continuation is the part of the verbs that answer a call: whether the run continues.
type continuation struct {
	Resume bool `negatable:"" help:"Continue the run after the answer and follow it. Default: on a terminal."`
}

// resumes reports whether the run is continued and followed.
func (r *continuation) resumes(a *console.Console) bool {
	if a.Given["resume"] || a.Inherited["resume"] {
		return r.Resume
	}
	return a.Interactive()
}

// sendAnswer sends an answer to a call, to the run in which it waits, and, if the run is to continue,
// follows it.
func sendAnswer(
	ctx context.Context, a *console.Console, o *target.OneRun, f *follower.Follower, call *harnessv1.PendingCall, resumes bool, request *harnessv1.SendInputRequest,
) (int, error) {
	request.Namespace, request.RunId, request.RequestId = o.Namespace, cmp.Or(call.GetRunId(), o.RunID), follow.NewID()
	if resumes {
		current, err := f.Current(ctx)
		if err != nil {
			return exit.Error, err
		}
		f.After, f.Since, f.Sent = current.GetRun().GetVersion(), current.GetRun().GetUpdateTime().AsTime(), []string{request.GetRequestId()}
	}
	if _, err := f.Session.Client.SendInput(ctx, request); err != nil {
		return exit.Error, err
	}
	if resumes {
		return f.Follow(ctx, a)
	}
	o.Stored(a, f.Session, "the answer to "+call.GetCallId()+" is stored")
	return exit.Done, nil
}

// open connects for an answer: if resumes is true, to a mesh that can continue the run.
func open(ctx context.Context, a *console.Console, o *target.OneRun, resumes bool) (*follower.Follower, error) {
	f := &follower.Follower{Target: &o.Target, Run: o.RunID, Output: "text", Render: "auto"}
	if resumes {
		_, err := f.Drive(ctx, a)
		o.RunID = f.Run
		return f, err
	}
	o.Lasts() // the answer has an id, so the next process can take it
	var err error
	f.Session, err = o.Connect(ctx, a, backend.Store)
	f.Run = o.RunID
	return f, err
}

// ApproveCmd answers an approval request.
type ApproveCmd struct {
	target.OneRun `embed:""`
	Call          string   `arg:"" optional:"" help:"Id of the call; optional if exactly one waits."`
	Yes           bool     `short:"y" help:"Approve it once without a prompt. Default without a terminal."`
	Rule          []string `sep:"none" placeholder:"RULE" help:"Also approve later calls in this run that the rule fits: the first words of commands, such as 'go test', 'exactly COMMAND' for this command line alone, a pattern for paths, such as 'docs/**', or a host, such as example.com. Repeatable."`
	Always        bool     `help:"Also approve all later calls of the tool in this run, whatever their arguments."`
	Arguments     string   `placeholder:"FILE" help:"Approve it once with the arguments in this file, a JSON object, instead of the agent's; - reads them from stdin."`
	Deny          bool     `help:"Deny the call."`
	Reason        string   `placeholder:"WHY" help:"Reason for a denial, or what to do instead, which the model receives."`
	Digest        string   `placeholder:"DIGEST" help:"Approve it once if it has this digest, of which 8 characters are enough: refuse the answer if the call is not the one that was shown."`
	continuation  `embed:""`
}

// digestForm is the form of --digest.
var digestForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{8,64}$`) })

// verdict returns the decision that the flags make, unset if they make none.
func (c *ApproveCmd) verdict(a *console.Console) (v follow.Verdict, err error) {
	switch {
	case len(c.Rule) > 0 && (c.Always || c.Deny || c.Arguments != ""):
		return v, errors.New("--rule takes none of --always, --deny and --arguments: use one of them")
	case c.Arguments != "" && (c.Always || c.Deny):
		return v, errors.New("--arguments takes none of --always and --deny: use one of them")
	case c.Always && c.Deny:
		return v, errors.New("--always and --deny are mutually exclusive: use one of them")
	case c.Yes && c.Deny:
		return v, errors.New("--yes and --deny are mutually exclusive: use one of them")
	case c.Digest != "" && !digestForm().MatchString(c.Digest):
		return v, fmt.Errorf("--digest: %q: expected the digest that harness show RUN prints, 8 to 64 hexadecimal digits", render.Short(c.Digest, 70))
	case c.Reason != "" && !c.Deny && a.Given["reason"]:
		return v, errors.New("--reason: only --deny takes a reason")
	case c.Always, len(c.Rule) > 0:
		v.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	case c.Deny:
		v.Decision, v.Reason = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, c.Reason
	case c.Yes, c.Digest != "", c.Arguments != "", !a.Interactive():
		v.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	}
	return v, nil
}

func (c *ApproveCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	v, err := c.verdict(a)
	if err != nil {
		return exit.Error, err
	}
	resumes := c.resumes(a)
	f, err := open(ctx, a, &c.OneRun, resumes)
	defer func() { target.Disconnect(ctx, a, f.Session) }()
	if err != nil {
		return console.Before(err)
	}
	call, err := c.pick(ctx, a, f.Session)
	if err != nil {
		return exit.Error, err
	}
	var code int
	send := func(v follow.Verdict) error {
		request := &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: v.Approval(call)}}
		code, err = sendAnswer(ctx, a, &c.OneRun, f, call, resumes, request)
		return err
	}
	if v.Decision == 0 && call.GetTool() != "" { // one that is announced cannot be shown
		err := follower.NewPrompt(ctx, a).Decide(ctx, call, a.Signals, send)
		if errors.Is(err, follow.ErrUndecided) {
			a.Report("%s: %s", err, target.Answering(c.RunID, call, c.Words(a)))
			return exit.Parked, nil
		}
		return code, err
	}
	v.Decision = cmp.Or(v.Decision, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE)
	if err := c.complete(a, call, &v); err != nil {
		return exit.Error, err
	}
	c.print(a, call, v)
	if err := send(v); err != nil {
		return code, err
	}
	if v.Decision == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN && call.GetTool() != "" {
		fmt.Fprintf(a.Err, "allowed for this run: %s\n", render.Granted(call.GetTool(), v.Rules))
	}
	return code, nil
}

// complete adds the rules and the arguments of the flags to a decision.
func (c *ApproveCmd) complete(a *console.Console, call *harnessv1.PendingCall, v *follow.Verdict) (err error) {
	if (len(c.Rule) > 0 || c.Arguments != "") && call.GetTool() == "" {
		return fmt.Errorf("call %s does not wait yet: rules and arguments are checked when the run is parked", c.Call)
	}
	if len(c.Rule) > 0 {
		if v.Rules, err = follow.Rules(call, c.Rule); err != nil {
			return fmt.Errorf("--rule: %w", err)
		}
	}
	if c.Arguments == "" {
		return nil
	}
	text, err := a.ReadText("--arguments", c.Arguments)
	if err != nil {
		return err
	}
	if text, err = follow.Object(text); err != nil {
		return fmt.Errorf("--arguments: %s: %w", c.Arguments, err)
	}
	v.Arguments = &text
	return nil
}

// pick returns the call that the answer is to, with all of its arguments.
func (c *ApproveCmd) pick(ctx context.Context, a *console.Console, s *backend.Session) (*harnessv1.PendingCall, error) {
	pending, err := pendingCalls(ctx, &c.OneRun, s)
	if err != nil {
		return nil, err
	}
	call, err := choose(a, &c.OneRun, pending, c.Call, runstate.KindApproval, runstate.KindReview)
	if err != nil {
		return nil, err
	}
	c.Call = call.GetCallId()
	switch {
	case !strings.HasPrefix(call.GetPreview().GetDigest(), c.Digest):
		return nil, fmt.Errorf("--digest: call %s is not the one that was shown: harness show %s%s shows it", c.Call, c.RunID, c.Words(a))
	case c.lasts() != "" && call.GetKind() == runstate.KindReview:
		return nil, fmt.Errorf("%s: call %s waits for a review, which applies to this call only", c.lasts(), c.Call)
	case c.lasts() != "" && call.GetOnlyOnce():
		return nil, fmt.Errorf("%s: call %s leaves the sandbox, which is allowed for one call at a time: leave out %s", c.lasts(), c.Call, c.lasts())
	}
	return backend.WholeCall(ctx, s.Client, c.Namespace, cmp.Or(call.GetRunId(), c.RunID), call), nil
}

// lasts returns the flag that approves later calls too; empty without one.
func (c *ApproveCmd) lasts() string {
	switch {
	case c.Always:
		return "--always"
	case len(c.Rule) > 0:
		return "--rule"
	}
	return ""
}

// print writes the call, and the arguments of the answer to it.
func (c *ApproveCmd) print(a *console.Console, call *harnessv1.PendingCall, v follow.Verdict) {
	if call.GetTool() == "" {
		return
	}
	var text strings.Builder
	of := ""
	if call.GetRunId() != "" {
		of = " of run " + render.Clean(call.GetRunId())
	}
	fmt.Fprintf(&text, "%s (call %s%s):\n", render.Clean(call.GetTool()), render.Clean(call.GetCallId()), of)
	style := a.Style(a.Err)
	if style.Width > 0 {
		style.Width -= 2
	}
	for _, line := range style.CallLines(call) {
		text.WriteString("  " + line + "\n")
	}
	if v.Arguments != nil {
		changed := proto.CloneOf(call)
		changed.Arguments = content.Inline(*v.Arguments)
		if changed.GetPreview() != nil {
			changed.Preview.Files = nil // the diff is that of the former arguments
		}
		text.WriteString("changed by you:\n")
		for _, line := range style.CallLines(changed) {
			text.WriteString("  " + line + "\n")
		}
	}
	fmt.Fprint(a.Err, text.String())
}

func (ApproveCmd) Help() string {
	return "Example:\n\n  harness approve r-x7k2qm4a --deny --reason 'not on this branch'"
}
