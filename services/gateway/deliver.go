package gateway

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Deliver returns the events of a record for observers, with id, version and time, and
// with the texts that are stored only once, in the conversation. Opaque parts of that
// are in no event.
func Deliver(e runlog.Entry) []*harnessv1.Event {
	rec := e.Record
	if len(rec.GetEvents()) == 0 {
		return nil
	}
	events := make([]*harnessv1.Event, len(rec.GetEvents()))
	traceID := ""
	if ref, ok := runtrace.Parse(e.Header.Traceparent); ok {
		traceID = ref.Trace.String()
	}
	for i, stored := range rec.GetEvents() {
		ev := proto.CloneOf(stored)
		ev.Version = rec.GetVersion()
		ev.Id = strconv.FormatUint(ev.Version, 10) + "-" + strconv.Itoa(i)
		ev.Time, ev.TraceId = rec.GetCommitTime(), traceID
		switch body := ev.GetEvent().(type) {
		case *harnessv1.Event_ModelResponse:
			if body.ModelResponse.GetText() == nil {
				body.ModelResponse.Text = response(rec).GetContent()
			}
			if body.ModelResponse.GetReasoning() == nil {
				body.ModelResponse.Reasoning = reasoning(response(rec))
			}
		case *harnessv1.Event_ToolResult:
			if body.ToolResult.GetResult() == nil {
				body.ToolResult.Result = answer(rec, body.ToolResult.GetCallId())
			}
		case *harnessv1.Event_ToolError:
			if body.ToolError.GetError() == nil {
				body.ToolError.Error = answer(rec, body.ToolError.GetCallId())
			}
		}
		events[i] = ev
	}
	return events
}

// response returns the model's message in a record; nil without one.
func response(rec *harnessv1.Record) *harnessv1.Message {
	for _, m := range rec.GetAppended() {
		if m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			return m
		}
	}
	return nil
}

// reasoning returns the reasoning of a message as the provider tells it to people: its
// texts, separated by blank lines; nil without any. A single text in a blob is returned
// as the blob; of several texts, one in a blob is represented by its preview.
func reasoning(m *harnessv1.Message) *harnessv1.Content {
	var texts []*harnessv1.Content
	for _, p := range m.GetParts() {
		if text := p.GetReasoning().GetText(); content.Text(text) != "" {
			texts = append(texts, text)
		}
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return texts[0]
	}
	shown := make([]string, len(texts))
	for i, text := range texts {
		if shown[i] = content.Text(text); text.GetBlob() != nil {
			shown[i] += "…"
		}
	}
	return content.Inline(strings.Join(shown, "\n\n"))
}

func answer(rec *harnessv1.Record, callID string) *harnessv1.Content {
	for _, m := range rec.GetAppended() {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL && m.GetToolCallId() == callID {
			return m.GetContent()
		}
	}
	return nil
}

// RunOf returns the summary of a run at a step; version is the newest of its log. A run
// whose step is addressed to an executor is running, whatever its previous status.
func RunOf(step runlog.Entry, version uint64) *harnessv1.Run {
	s, parent := step.Record.GetStep().GetSnapshot(), runstate.ParentOf(step.Record.GetStep())
	run := &harnessv1.Run{
		Namespace:  step.Run.Namespace,
		RunId:      step.Run.ID,
		Status:     harnessv1.RunStatus_RUN_STATUS_RUNNING,
		Goal:       s.GetGoalPreview(),
		TurnCount:  s.GetTurnCount(),
		MaxTurns:   s.GetMaxTurns(),
		Version:    version,
		CreateTime: s.GetCreateTime(),
		UpdateTime: step.Record.GetCommitTime(),
		Segment:    s.GetSegment(),
		Model:      s.GetModel(),
		StartedBy:  s.GetStartedBy(),
		Features:   s.GetFeatures(),

		ParentRunId: parent.GetRunId(),
		RootRunId:   parent.GetRootRunId(),
	}
	if started := step.Record.GetStep().GetRepairTrigger(); len(run.GetFeatures()) == 0 { // before its first decision
		run.Features = started.GetFeatures()
	}
	if s.GetTrace() != nil {
		run.TraceId = runtrace.ID(s.GetTrace()).String()
	}
	if result := ResultOf(step); result != nil {
		run.Status, run.Reason = result.GetStatus(), result.GetReason()
	}
	return run
}

// ChildrenOf returns the children of a run as GetRun shows them.
func ChildrenOf(s runstate.TreeFields) []*harnessv1.ChildRun {
	var children []*harnessv1.ChildRun
	for _, c := range s.GetChildren() {
		r := c.GetReport()
		status := r.GetStatus()
		if c.GetOrder() > r.GetOrder() && !tree.Ended(c) {
			status = harnessv1.RunStatus_RUN_STATUS_RUNNING
		}
		children = append(children, &harnessv1.ChildRun{
			RunId: c.GetRunId(), CallId: c.GetCallId(), Agent: c.GetAgent(), Status: status, Reason: r.GetReason(),
			Accepted: r.GetAccepted(), Turns: r.GetTurns(), Usage: r.GetUsage(),
		})
	}
	return children
}

// TracesOf returns the trace ids of a run, oldest first.
func TracesOf(s runstate.RecordFields) []string {
	var ids []string
	for _, id := range runtrace.IDs(s.GetTrace()) {
		ids = append(ids, id.String())
	}
	return ids
}

// ResultOf returns the result for watchers of a run that is parked or has ended at a
// step, without what Lacking reports. It is nil if the record is any other one.
func ResultOf(e runlog.Entry) *harnessv1.HarnessResult {
	step := e.Record.GetStep()
	s := step.GetSnapshot()
	switch step.GetTo() {
	case runlog.End:
		if r := step.GetResult(); r != nil {
			return r
		}
		r := resultSoFar(s)
		r.Status, r.Reason = s.GetStatus(), s.GetStopReason()
		return r
	case runlog.Park:
		r := resultSoFar(s)
		r.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		r.Reason = s.GetStopReason()
		r.Pending, r.WakeAt = Answerable(s), s.GetWakeAt()
		if p := step.GetParked(); p != nil {
			r.Reason, r.Pending = p.GetReason(), answerable(p.GetPending())
		}
		return r
	}
	return nil
}

// TranscriptPath returns the path of a run's conversation on the HTTP side.
func TranscriptPath(namespace, runID string) string {
	return "/v1/runs/" + url.PathEscape(runID) + "/conversation?namespace=" + url.QueryEscape(namespace)
}

// Lacking reports whether parts of a step's state that its result includes are stored
// elsewhere. The result of an end contains them itself.
func Lacking(e runlog.Entry) bool {
	step := e.Record.GetStep()
	return runlog.IsRest(step.GetTo()) && step.GetResult() == nil && runstate.HasPackedLedgers(step.GetSnapshot())
}

func resultSoFar(s *harnessv1.Snapshot) *harnessv1.HarnessResult {
	return &harnessv1.HarnessResult{
		Answer:    s.GetAnswer(),
		Summary:   s.GetSummary(),
		TurnCount: s.GetTurnCount(),
		ToolCalls: s.GetSpent().GetToolCallsTotal(),
		Usage:     s.GetSpent().GetUsage(),
		Duration:  s.GetSpent().GetActive(),

		Deliverables: workitem.Deliverables(s.GetWorkItemLedger()),
		Coverage:     s.GetCoverageLedger().GetCoverage(),
		Output:       s.GetOutput(),
		Model:        s.GetAnswerModel(),
	}
}

// WaitingOf returns inputs as clients see them.
func WaitingOf(items []*harnessv1.InboxItem) []*harnessv1.WaitingInput {
	var waiting []*harnessv1.WaitingInput
	for _, item := range items[:min(len(items), runlog.MaxDrainItems)] {
		call, _ := input.Answers(item)
		waiting = append(waiting, &harnessv1.WaitingInput{ItemId: item.GetId(), Kind: input.Kind(item), CallId: call})
	}
	return waiting
}

// Answerable returns the calls that a client may answer: those that wait, without the calls
// of sub-agents.
func Answerable(s runstate.SharedFields) []*harnessv1.PendingCall {
	return answerable(runstate.AwaitedCalls(s))
}

func answerable(calls []*harnessv1.PendingCall) []*harnessv1.PendingCall {
	return slices.DeleteFunc(slices.Clone(calls), func(c *harnessv1.PendingCall) bool { return c.GetKind() == runstate.KindAgent })
}
