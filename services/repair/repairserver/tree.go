package repairserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

const (
	// maxReportedAnswer bounds the answer that a child gives its parent, in bytes.
	maxReportedAnswer = 1 << 20
	// maxOrders bounds the orders of a run that are sent at the same time.
	maxOrders = 8
)

// relate reports to the parent of a run that it is parked or has ended, and sends the orders of the
// run to its children, before a step to park or end is acknowledged. Both may be repeated.
func (s *Server) relate(ctx context.Context, cfg executor.Config, e runlog.Entry) error {
	step := e.Record.GetStep()
	if step == nil {
		return nil // an inbox item
	}
	s.endServers(ctx, e)
	unchanged, err := s.endWorktree(ctx, e)
	if err != nil {
		return fmt.Errorf("end of the worktree: %w", err)
	}
	if err := s.report(ctx, cfg, e, unchanged); err != nil {
		return fmt.Errorf("report to the parent: %w", err)
	}
	if runstate.Expired(step.GetSnapshot()) {
		return nil // its children are deleted before it is erased
	}
	return s.sendOrders(ctx, cfg, e)
}

// sendOrders sends the orders of a step to the children: before it is decided, so that the decision
// knows them as sent.
func (s *Server) sendOrders(ctx context.Context, cfg executor.Config, e runlog.Entry) error {
	due := tree.Due(e.Record.GetStep().GetSnapshot())
	if len(due) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxOrders)
	for _, c := range due {
		g.Go(func() error {
			if err := s.order(ctx, cfg, e, c); err != nil {
				return fmt.Errorf("order to %s: %w", c.GetRunId(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// report appends the report of a child's step to the inbox of its parent. A child whose parent was deleted is deleted
// too. unchanged is true if the child has ended and its worktree has no changes.
func (s *Server) report(ctx context.Context, cfg executor.Config, e runlog.Entry, unchanged bool) error {
	report, answer, ok := tree.ReportOf(e.Run, e.Header.Version, e.Record.GetStep())
	if !ok {
		return nil
	}
	report.Unchanged = unchanged
	known := e.Record.GetStep().GetSnapshot().GetParent()
	parent := runlog.Run{Namespace: e.Run.Namespace, ID: known.GetRunId()}
	step, err := s.newestStep(ctx, parent)
	if err != nil {
		return err
	}
	if tree.StateOf(known, step).GetGone() {
		if err := s.expireChild(ctx, cfg, e.Run); !errors.Is(err, errWorks) {
			return err
		}
		return nil // its end is reported too
	}
	if tree.Knows(step.GetSnapshot(), report) || runstate.Expired(e.Record.GetStep().GetSnapshot()) && !tree.Expects(step.GetSnapshot(), report) {
		return nil
	}
	if report.Answer, err = s.hand(ctx, e.Run, parent, answer); err != nil {
		return err
	}
	failpoint.Hit(repair.Name, "report")
	err = s.give(ctx, parent, step, tree.ReportItem(report))
	failpoint.Hit(repair.Name, "reported")
	return err
}

// hand returns a text of one run, stored for another.
func (s *Server) hand(ctx context.Context, from, to runlog.Run, text *harnessv1.Content) (*harnessv1.Content, error) {
	ref := text.GetBlob()
	if ref == nil {
		return text, nil
	}
	data, err := s.log.Blob(ctx, from, ref.GetDigest())
	if err != nil {
		return nil, err
	}
	whole := string(data)
	if len(whole) > maxReportedAnswer {
		whole = content.Cut(whole, maxReportedAnswer) + "\n[cut: the answer is longer than 1 MiB]"
	}
	return s.store(ctx, to, whole)
}

// store returns a text as content of a run: inline, or a blob above what records hold.
func (s *Server) store(ctx context.Context, run runlog.Run, text string) (*harnessv1.Content, error) {
	if len(text) <= runlog.MaxInline {
		return content.Inline(text), nil
	}
	ref, err := s.log.PutBlob(ctx, run, []byte(text))
	if err != nil {
		return nil, err
	}
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}, nil
}

// newestStep returns the newest step of a run; nil if there is no such run.
func (s *Server) newestStep(ctx context.Context, run runlog.Run) (*harnessv1.Step, error) {
	newest, err := s.log.Newest(ctx, run)
	if err != nil || newest == 0 {
		return nil, err
	}
	view, err := s.log.View(ctx, run, newest)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, nil //nolint:nilnil // the run has been erased meanwhile
	}
	return view.Step.Record.GetStep(), err
}

// expireBelow deletes the children of a deleted run. It has to succeed before the run is erased, because nothing else
// knows them.
func (s *Server) expireBelow(ctx context.Context, cfg executor.Config, closing runlog.Entry) error {
	for _, c := range closing.Record.GetStep().GetSnapshot().GetChildren() {
		if err := s.expireChild(ctx, cfg, runlog.Run{Namespace: closing.Run.Namespace, ID: c.GetRunId()}); err != nil {
			return fmt.Errorf("delete %s: %w", c.GetRunId(), err)
		}
	}
	if len(closing.Record.GetStep().GetSnapshot().GetChildren()) > 0 {
		failpoint.Hit(repair.Name, "below_expired")
	}
	return nil
}

var errWorks = errors.New("an order to end is sent")

// expireChild deletes a child whose parent is deleted, and has it end first if it works; then the error is
// errWorks.
func (s *Server) expireChild(ctx context.Context, cfg executor.Config, child runlog.Run) error {
	newest, err := s.log.Newest(ctx, child)
	if err != nil || newest == 0 {
		return err
	}
	view, err := s.log.View(ctx, child, newest)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return nil
	case err != nil:
		return err
	case runstate.Expired(view.Step.Record.GetStep().GetSnapshot()):
		return nil
	}
	rec, refused := tree.Expire(view, "", s.now(), &harnessv1.Writer{Executor: repair.Name, Instance: cfg.Instance, Nonce: rand.Uint64()})
	if refused != nil {
		item := &harnessv1.InboxItem{
			Id: fmt.Sprintf("deleted-%d", view.Newest.Header.Version), Time: timestamppb.New(s.now()),
			Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: "The run that started it was deleted."}},
		}
		if _, _, err := s.log.AppendInbox(ctx, child, item, 0); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errWorks, refused)
	}
	_, err = s.log.Append(ctx, rec)
	return err
}

// order starts a child, or gives it a later order. If there is no such run, it reports so
// for the child.
func (s *Server) order(ctx context.Context, cfg executor.Config, parent runlog.Entry, c *harnessv1.Child) error {
	child := runlog.Run{Namespace: parent.Run.Namespace, ID: c.GetRunId()}
	there, err := s.newestStep(ctx, child)
	if err != nil {
		return err
	}
	how := tree.OrderOf(c)
	if expired := runstate.Expired(there.GetSnapshot()); there == nil || expired {
		if expired || tree.WasThere(c) || c.GetWant() != harnessv1.ChildWant_CHILD_WANT_WORK {
			return s.give(ctx, parent.Run, parent.Record.GetStep(), tree.AbsentItem(parent.Run, c))
		}
		return s.startChild(ctx, cfg, parent, child, c) // its first decision sees the newest order
	}
	if how == tree.Start || tree.Took(there.GetSnapshot(), c) {
		return nil
	}
	var prompt *harnessv1.Content
	if how == tree.Message {
		if prompt, err = s.prompt(ctx, parent, child, c); err != nil {
			return err
		}
	}
	failpoint.Hit(repair.Name, "order")
	err = s.give(ctx, child, there, tree.OrderItem(parent.Run, c, prompt))
	if err == nil {
		// The child's worker otherwise reads its inbox at the next heartbeat.
		if err := s.log.Poke(child); err != nil {
			s.logger.Warn("poke failed; the worker finds the order when it next reads the inbox", "namespace", child.Namespace, "run", child.ID, "error", err)
		}
	}
	failpoint.Hit(repair.Name, "ordered")
	return err
}

// give appends an item to the inbox of a run, unless the run has it there since step, one of its steps.
func (s *Server) give(ctx context.Context, run runlog.Run, step *harnessv1.Step, item *harnessv1.InboxItem) error {
	item.Time = timestamppb.New(s.now())
	_, _, err := s.log.AppendInbox(ctx, run, item, step.GetSnapshot().GetInboxCursor())
	return err
}

// startChild appends the first record of a child, unless it is there.
func (s *Server) startChild(ctx context.Context, cfg executor.Config, parent runlog.Entry, child runlog.Run, c *harnessv1.Child) error {
	snapshot := parent.Record.GetStep().GetSnapshot()
	started, err := s.started(ctx, parent)
	if err != nil {
		return err
	}
	spec := started.GetSpec()
	goal, err := s.prompt(ctx, parent, child, c)
	if err != nil {
		return err
	}
	def := tree.Lookup(tree.Resolve(spec.GetAgent().GetAgents()), c.GetAgent())
	if def == nil {
		return fmt.Errorf("sub-agent %q is not defined", c.GetAgent())
	}
	tools, err := s.clientTools(ctx, parent, child, def)
	if err != nil {
		return err
	}
	now := s.now()
	step := tree.FirstStep(parent.Run, snapshot, started, def, c, goal, tools, now)
	step.Snapshot.Trace = runtrace.Below(runtrace.Current(snapshot.GetTrace()), child.ID, c.GetAgent(), now)
	rec := &harnessv1.Record{
		Namespace: child.Namespace, RunId: child.ID, Version: 1, Schema: runlog.Schema, CommitTime: timestamppb.New(now),
		Writer: &harnessv1.Writer{Executor: repair.Name, Instance: cfg.Instance, Nonce: rand.Uint64()},
		Body:   &harnessv1.Record_Step{Step: step},
	}
	failpoint.Hit(repair.Name, "child")
	if _, err = s.log.Append(ctx, rec); errors.Is(err, runlog.ErrFenced) {
		err = nil // another worker has started it
	}
	failpoint.Hit(repair.Name, "child_started")
	return err
}

// clientTools returns the tools of clients that a child has, stored for it; nil for none.
func (s *Server) clientTools(ctx context.Context, parent runlog.Entry, child runlog.Run, def *harnessv1.SubAgent) (*harnessv1.Content, error) {
	stored := parent.Record.GetStep().GetSnapshot().GetClientTools()
	if stored == nil || len(def.GetTools()) == 0 {
		return nil, nil //nolint:nilnil // the child has none
	}
	text, err := s.textOf(ctx, parent.Run, stored)
	if err != nil {
		return nil, err
	}
	text, err = tree.ClientTools(text, def)
	if err != nil || text == "" {
		return nil, err
	}
	return s.store(ctx, child, text)
}

// started returns the message that a run was started with.
func (s *Server) started(ctx context.Context, run runlog.Entry) (*harnessv1.RepairTrigger, error) {
	first, err := s.log.Read(ctx, run.Run, run.Record.GetStep().GetSnapshot().GetFirstSequence())
	if err != nil {
		return nil, err
	}
	return first.Record.GetStep().GetRepairTrigger(), nil
}

// prompt returns the text of the newest message to a child, stored for the child: the prompt of
// its call, or that of its task with the results of the tasks before.
func (s *Server) prompt(ctx context.Context, parent runlog.Entry, child runlog.Run, c *harnessv1.Child) (*harnessv1.Content, error) {
	snapshot := parent.Record.GetStep().GetSnapshot()
	if g, task := tree.TaskOf(snapshot, c); g != nil {
		text, err := s.taskPrompt(ctx, parent, g, task.GetTask())
		if err != nil {
			return nil, err
		}
		for _, before := range tree.Before(g, task) {
			given, err := tree.Given(before, func(c *harnessv1.Content) (string, error) { return s.textOf(ctx, parent.Run, c) })
			if err != nil {
				return nil, err
			}
			text += given
		}
		return s.store(ctx, child, text)
	}
	arguments := c.GetArguments()
	if arguments == nil {
		arguments = tree.CallArguments(snapshot, tree.StartedBy(c))
	}
	if arguments == nil {
		return nil, fmt.Errorf("call %s does not wait", tree.StartedBy(c))
	}
	text, err := s.textOf(ctx, parent.Run, arguments)
	if err != nil {
		return nil, err
	}
	prompt, err := tree.Prompt(text)
	if err != nil {
		return nil, err
	}
	return s.store(ctx, child, prompt)
}

// taskPrompt returns the prompt of a task: from the call that made the graph, or from the spec of the run.
func (s *Server) taskPrompt(ctx context.Context, run runlog.Entry, g *harnessv1.Graph, task *harnessv1.GraphTask) (string, error) {
	if g.GetCallId() == "" {
		started, err := s.started(ctx, run)
		if err != nil {
			return "", err
		}
		if g.GetSwarm() != nil {
			goal, err := s.textOf(ctx, run.Run, started.GetSpec().GetGoal())
			return tree.SwarmPrompt(goal, started.GetSpec().GetTask().GetSources(), task), err
		}
		for _, t := range started.GetSpec().GetGraph() {
			if t.GetId() == task.GetId() {
				return t.GetPrompt(), nil
			}
		}
		return "", fmt.Errorf("there is no task %q", task.GetId())
	}
	text, err := s.textOf(ctx, run.Run, tree.CallArguments(run.Record.GetStep().GetSnapshot(), g.GetCallId()))
	if err != nil {
		return "", err
	}
	return tree.TaskPrompt(text, task.GetId())
}

func (s *Server) textOf(ctx context.Context, run runlog.Run, c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	data, err := s.log.Blob(ctx, run, ref.GetDigest())
	return string(data), err
}

// seeParent observes the parent of a child that starts.
func (o *observer) seeParent(ctx context.Context) (*harnessv1.Observation, error) {
	parent := o.task.Step().GetRepairTrigger().GetParent()
	step, err := o.s.newestStep(ctx, runlog.Run{Namespace: o.task.Run.Namespace, ID: parent.GetRunId()})
	if err != nil {
		return nil, err
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Parent{Parent: tree.StateOf(parent, step)}}, nil
}
