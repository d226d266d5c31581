package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// AnswerCmd answers a call of a client's tool, or a question.
type AnswerCmd struct {
	target.OneRun `embed:""`
	// First is a separate argument so that flags may follow it.
	First *string  `arg:"" optional:"" name:"call" help:"Id of the call; optional if exactly one call waits for an answer."`
	Text  []string `arg:"" optional:"" name:"text" help:"The answer; - reads it from stdin."`
	Call  string   `name:"call" placeholder:"ID" help:"Id of the call, if it could be mistaken for text."`
	File  string   `placeholder:"FILE" help:"File that contains the answer."`
	Error bool     `help:"The call failed; the answer is the error message."`
	// Decline and Cancel answer a question of a server without a TEXT.
	Decline bool `help:"Decline the question of a server of tools."`
	Cancel  bool `help:"Close the question of a server of tools without a choice."`

	continuation `embed:""`
}

func (c *AnswerCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	words := c.words()
	switch {
	case c.Decline && c.Cancel, c.action() != 0 && (c.Error || c.File != "" || len(words) > 1):
		return exit.Error, errors.New("--decline and --cancel are complete answers: use one of them, without TEXT, --file and --error")
	case c.action() != 0:
	case len(words) == 0 && c.File == "":
		return exit.Error, errors.New("missing TEXT: write the answer after the run, - to read it from stdin, or --file FILE")
	}
	resumes := c.resumes(a)
	f, err := open(ctx, a, &c.OneRun, resumes)
	defer func() { target.Disconnect(ctx, a, f.Session) }()
	if err != nil {
		return console.Before(err)
	}
	call, words, err := c.pick(ctx, a, f.Session, words)
	if err != nil {
		return exit.Error, err
	}
	text := ""
	if c.action() == 0 {
		if text, err = c.read(a, words); err != nil {
			return exit.Error, err
		}
		if call.GetKind() == runstate.KindQuestion && strings.TrimSpace(text) == "" {
			return exit.Error, fmt.Errorf("the answer is empty: call %s is a question", call.GetCallId())
		}
		if call.GetKind() == runstate.KindQuestion && call.GetQuestion() == nil && c.File == "" {
			_, options := render.Question(call)
			if option := follow.Chosen(text, options); option != text { // a number, as in the prompt
				text = option
				a.Report("the answer is option %s: %s", strings.Join(words, " "), render.Short(text, 200))
			}
		}
	}
	return sendAnswer(ctx, a, &c.OneRun, f, call, resumes, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{
			CallId: call.GetCallId(), Result: content.Inline(text), IsError: c.Error, Action: c.action(), Round: call.GetQuestion().GetRound(),
		},
	}})
}

// action returns the answer that a flag gives; unspecified without one.
func (c *AnswerCmd) action() harnessv1.AnswerAction {
	switch {
	case c.Decline:
		return harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
	case c.Cancel:
		return harnessv1.AnswerAction_ANSWER_ACTION_CANCEL
	}
	return harnessv1.AnswerAction_ANSWER_ACTION_UNSPECIFIED
}

// words returns the arguments after the run.
func (c *AnswerCmd) words() []string {
	if c.First == nil {
		return nil
	}
	return append([]string{*c.First}, c.Text...)
}

// pick returns the call to answer and the words of the answer, which may begin with the
// call's id.
func (c *AnswerCmd) pick(ctx context.Context, a *console.Console, s *backend.Session, words []string) (*harnessv1.PendingCall, []string, error) {
	pending, err := pendingCalls(ctx, &c.OneRun, s)
	if err != nil {
		return nil, nil, err
	}
	id := c.Call
	if id == "" && len(words) > 0 {
		named := slices.ContainsFunc(pending, func(p *harnessv1.PendingCall) bool { return p.GetCallId() == words[0] })
		// While no call waits, the call may be one that a turn has announced.
		announced := len(pending) == 0 && (len(words) > 1 || c.File != "")
		if named || announced {
			id, words = words[0], words[1:]
		} else if err := c.unlessAnswered(ctx, s, words); err != nil {
			return nil, nil, err
		}
	}
	if len(words) > 0 && c.File != "" {
		if id == "" {
			return nil, nil, fmt.Errorf("call %q does not wait for an answer; --file FILE takes no TEXT", words[0])
		}
		return nil, nil, errors.New("TEXT and --file are mutually exclusive: use one of them")
	}
	kinds := []string{runstate.KindClientTool, runstate.KindQuestion}
	if c.Error { // of a call that waits for a review, all that can be said is that it failed
		kinds = append(kinds, runstate.KindReview)
	}
	call, err := choose(a, &c.OneRun, pending, id, kinds...)
	switch {
	case err != nil:
	case c.action() != 0 && len(words) > 0:
		err = fmt.Errorf("call %q does not wait for an answer", words[0])
	case c.action() != 0 && len(pending) > 0 && call.GetQuestion() == nil:
		err = fmt.Errorf("call %s is no question of a server: answer it with TEXT, or --error WHY", call.GetCallId())
	case c.action() == 0 && len(words) == 0 && c.File == "":
		err = fmt.Errorf("missing TEXT: %s is the call; write the answer after it", id)
	}
	return call, words, err
}

// unlessAnswered refuses a first word that names an answered call: the other words are
// not an answer to another call.
func (c *AnswerCmd) unlessAnswered(ctx context.Context, s *backend.Session, words []string) error {
	if len(words) < 2 {
		return nil
	}
	state, err := s.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return err
	}
	if slices.Contains(state.GetSnapshot().GetAnsweredCalls(), runlog.HashID(words[0])) {
		return fmt.Errorf("call %q already has an answer (if this is text, name the call with --call)", words[0])
	}
	return nil
}

// read returns the answer: the words, all of stdin, or a file, without trailing line
// breaks.
func (c *AnswerCmd) read(a *console.Console, words []string) (string, error) {
	text := strings.Join(words, " ")
	var err error
	switch {
	case c.File != "":
		text, err = console.ReadText("--file", c.File, nil)
	case text == "-":
		text, err = console.ReadText("TEXT", "", a.In)
	default:
		err = console.CheckSaid("TEXT", text)
	}
	return strings.TrimRight(text, "\r\n"), err
}

// pendingCalls returns the calls of the run, and of the runs below it, that wait for an answer.
func pendingCalls(ctx context.Context, o *target.OneRun, s *backend.Session) ([]*harnessv1.PendingCall, error) {
	all, err := target.PendingOf(ctx, s, o.Namespace, o.RunID)
	if err != nil {
		return nil, err
	}
	calls := make([]*harnessv1.PendingCall, len(all))
	for i, p := range all {
		calls[i] = p.GetCall()
		if p.GetRunId() != o.RunID {
			calls[i].RunId = p.GetRunId()
		}
	}
	return calls, nil
}

// choose returns the call that a command is about: the named one, or the only one of its
// kinds. A call that does not wait is passed on, so that the gateway reports whether it
// has an answer; one of another kind is refused with the command that answers it.
func choose(a *console.Console, o *target.OneRun, pending []*harnessv1.PendingCall, id string, kinds ...string) (*harnessv1.PendingCall, error) {
	what := "an answer"
	if kinds[0] == runstate.KindApproval {
		what = "an approval"
	}
	other := func(p *harnessv1.PendingCall) error {
		waits := "an answer"
		switch p.GetKind() {
		case runstate.KindApproval:
			waits = "an approval"
		case runstate.KindReview:
			waits = "a review"
		}
		return fmt.Errorf("call %s of run %s waits for %s, not for %s: %s", p.GetCallId(), cmp.Or(p.GetRunId(), o.RunID), waits, what,
			target.Answering(target.RunOf(o.RunID, p, pending), p, o.Words(a)))
	}
	var fit, rest []*harnessv1.PendingCall
	for _, p := range pending {
		switch fits := slices.Contains(kinds, p.GetKind()); {
		case id != "" && p.GetCallId() != id:
		case fits:
			fit = append(fit, p)
		default:
			rest = append(rest, p)
		}
	}
	below := slices.ContainsFunc(fit, func(p *harnessv1.PendingCall) bool { return p.GetRunId() != "" })
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1 && below:
		commands := make([]string, len(fit))
		for i, p := range fit {
			commands[i] = target.Answering(target.RunOf(o.RunID, p, pending), p, o.Words(a)) + " (run " + cmp.Or(p.GetRunId(), o.RunID) + ")"
		}
		return nil, fmt.Errorf("%d calls of run %s and its sub-agents wait for %s, so name one: %s", len(fit), o.RunID, what, strings.Join(commands, "; "))
	case id != "" && len(rest) > 0:
		return nil, other(rest[0])
	case id != "":
		return &harnessv1.PendingCall{CallId: id}, nil
	case len(fit) > 1:
		var ids []string
		for _, p := range fit {
			ids = append(ids, p.GetCallId())
		}
		return nil, fmt.Errorf("%d calls of run %s wait for %s, so name the CALL: %q", len(fit), o.RunID, what, ids)
	case len(rest) > 0:
		return nil, other(rest[0])
	}
	return nil, fmt.Errorf("run %s waits for no %s", o.RunID, strings.TrimPrefix(what, "an "))
}

func (AnswerCmd) Help() string {
	return "Example:\n\n  harness answer r-x7k2qm4a 'use PostgreSQL'"
}
