package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

func level(name, script string, below ...*harnessv1.SubAgent) *harnessv1.SubAgent {
	return &harnessv1.SubAgent{
		Name: name, Description: "Helps.", Instructions: "Help.", Model: "script:" + scriptFile("tree-"+name, script), Agents: below,
	}
}

// deep is a tree of depth 3: two runs side by side, of which one delegates twice. The run at
// the bottom waits for an approval, and the one above it asks a question first.
func deep() *harnessv1.RunSpec {
	bottom := level("bottom", `turns:
  - {text: "At the bottom.", calls: [{name: run_command, arguments: {command: 'echo deep >> out'}}]}
  - {text: "The line is there.", calls: [{name: work_complete, arguments: {summary: appended}}]}
`)
	middle := level("middle", `turns:
  - {text: "First a question.", calls: [{name: ask_user, arguments: {question: "Which file?"}}]}
  - {text: "Then the work.", calls: [{name: bottom, arguments: {prompt: Append a line.}}]}
  - {text: "Done in the middle.", calls: [{name: work_complete, arguments: {summary: middle}}]}
`, bottom)
	upper := level("upper", `turns:
  - {text: "I pass it on.", calls: [{name: middle, arguments: {prompt: Do it.}}]}
  - {text: "Done above.", calls: [{name: work_complete, arguments: {summary: upper}}]}
`, middle)
	other := level("other", `turns:
  - {text: "Looking.", calls: [{name: read_file, arguments: {path: a.txt}}]}
  - {text: "Looked.", calls: [{name: work_complete, arguments: {summary: looked}}]}
`)
	other.ReadOnly = proto.Bool(true)
	root := scriptFile("tree-root", `turns:
  - {text: "Two at the same time.", calls: [{name: upper, arguments: {prompt: Work.}}, {name: other, arguments: {prompt: Look.}}]}
  - {text: "All is done.", calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	return &harnessv1.RunSpec{
		Goal:   content.Inline("Delegate."),
		Agent:  &harnessv1.AgentSpec{Model: "script:" + root, Agents: []*harnessv1.SubAgent{upper, other}},
		Config: &harnessv1.LoopConfig{Sandbox: asking()},
	}
}

// eventsAfter returns the events of a watch after an offset, until all that is stored was sent.
func (a *asker) eventsAfter(after string, tree *bool) (events []*harnessv1.Event) {
	a.Helper()
	stream, err := a.client.WatchRun(a.ctx, &harnessv1.WatchRunRequest{
		RunId: a.run, After: after, Until: harnessv1.WatchUntil_WATCH_UNTIL_NOW, NoDeltas: true, Tree: tree,
	})
	a.must(err)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events
		}
		a.must(err)
		if e := r.GetUpdate().GetEvent(); e != nil {
			events = append(events, e)
		}
	}
}

// awaitRest watches the run until it is parked or has ended, and returns the result.
func (a *asker) awaitRest() (result *harnessv1.HarnessResult, deltas map[string]bool) {
	a.Helper()
	deltas = map[string]bool{}
	stream, err := a.client.WatchRun(a.ctx, &harnessv1.WatchRunRequest{RunId: a.run, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	a.must(err)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return result, deltas
		}
		a.must(err)
		if u := r.GetUpdate().GetResult(); u != nil {
			result = u
		}
		if d := r.GetUpdate().GetDelta(); d != nil {
			deltas[d.GetRunId()] = true
		}
	}
}

// TestSystemTreeOnOneStream: a root's watch carries a tree of depth 3; its rest, its pending calls and
// the answers to these speak for the tree; and a watch that is cut after any event continues
// with its offset without a missed, doubled or misplaced event.
func TestSystemTreeOnOneStream(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "tree")
	spec := deep()
	spec.Workspace = newWorkspace(t)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: spec})
	a.must(err)

	asked, _ := a.awaitRest()
	call := a.onlyPending(asked, "question", 2)
	send := func(request *harnessv1.SendInputRequest) error {
		_, err := a.client.SendInput(a.ctx, request)
		return err
	}
	answer := &harnessv1.SendInputRequest{RunId: a.run, RequestId: "answer", Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: content.Inline("out")},
	}}
	a.must(send(answer))
	a.must(send(answer)) // sent again it has no second effect
	waits, _ := a.awaitRest()
	call = a.onlyPending(waits, "approval", 3)
	a.must(send(&harnessv1.SendInputRequest{RunId: a.run, Input: &harnessv1.SendInputRequest_Approval{
		Approval: &harnessv1.Approval{CallId: call.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
	}}))
	err = send(&harnessv1.SendInputRequest{RunId: a.run, Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: "nowhere", Result: content.Inline("x")},
	}})
	if reason := fault.ReasonOf(err); reason != "CALL_NOT_PENDING" {
		t.Errorf("an answer to an unknown call: %v", err)
	}
	end, _ := a.awaitRest()
	if end.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || !end.GetAccepted() {
		t.Fatalf("the run is %v", end)
	}

	whole := a.eventsAfter("", nil)
	a.sound(whole)
	for i, e := range whole {
		after := e.GetOffset()
		if after == "" {
			after = e.GetId()
		}
		rest := a.eventsAfter(after, nil)
		a.sound(append(slices.Clone(whole[:i+1]), rest...))
		if len(rest) != len(whole)-i-1 {
			t.Fatalf("after %s: %d events, expected %d", after, len(rest), len(whole)-i-1)
		}
	}
	// A plain version is an offset too: what is closed there does not come again.
	ended := slices.IndexFunc(whole, func(e *harnessv1.Event) bool { return e.GetRunId() == "" && e.GetAgentEnded().GetAgent() == "upper" })
	for _, e := range a.eventsAfter(whole[ended].GetId(), nil) {
		if e.GetAgent() == "upper" {
			t.Errorf("%s of a closed run comes after %s", e.GetId(), whole[ended].GetId())
		}
	}
	for _, e := range a.eventsAfter("", proto.Bool(false)) {
		if e.GetRunId() != "" || e.GetOffset() != "" {
			t.Errorf("%s with tree: false", e.GetId())
		}
	}
	alone := a.eventsOf(whole, "other")
	for _, e := range alone {
		if e.GetRunId() != "" || e.GetOffset() != "" || strings.Contains(e.GetId(), "/") {
			t.Errorf("a run without children names %v", e)
		}
	}
}

// eventsOf returns what a watch of a sub-agent's run itself carries.
func (a *asker) eventsOf(events []*harnessv1.Event, agent string) []*harnessv1.Event {
	a.Helper()
	i := slices.IndexFunc(events, func(e *harnessv1.Event) bool { return e.GetAgent() == agent })
	if i < 0 {
		a.Fatalf("no event of %s", agent)
	}
	child := *a
	child.run = events[i].GetRunId()
	return child.eventsAfter("", nil)
}

// onlyPending checks that a result and ListPending name one call, of a run at a depth.
func (a *asker) onlyPending(r *harnessv1.HarnessResult, kind string, depth int) *harnessv1.PendingCall {
	a.Helper()
	if len(r.GetPending()) != 1 || r.GetPending()[0].GetKind() != kind || r.GetPending()[0].GetRunId() == "" {
		a.Fatalf("the tree waits for %v", r)
	}
	call := r.GetPending()[0]
	if r.GetReason().GetKind() != "agent" || r.GetReason().GetDetails().GetRunId() != call.GetRunId() {
		a.Errorf("the reason is %v, and run %s waits", r.GetReason(), call.GetRunId())
	}
	list, err := a.client.ListPending(a.ctx, &harnessv1.ListPendingRequest{RunId: a.run})
	a.must(err)
	if len(list.GetPending()) != 1 || list.GetPending()[0].GetRunId() != call.GetRunId() || list.GetPending()[0].GetCall().GetCallId() != call.GetCallId() {
		a.Errorf("the pending calls of the root are %v", list)
	}
	levels := 0
	for run := call.GetRunId(); run != a.run; levels++ {
		info, err := waittest.Retry(a.ctx, func(ctx context.Context) (*harnessv1.GetRunResponse, error) {
			return a.client.GetRun(ctx, &harnessv1.GetRunRequest{RunId: run})
		})
		a.must(err)
		run = info.GetRun().GetParentRunId()
	}
	if levels != depth {
		a.Errorf("the call waits %d levels down, expected %d", levels, depth)
	}
	return call
}

// sound checks the order of a tree's events: each once, by version in its run, and those of a
// child between the two events of its parent.
func (a *asker) sound(events []*harnessv1.Event) {
	a.Helper()
	type mark struct {
		version uint64
		index   int
	}
	last, open, runs := map[string]mark{}, map[string]string{}, map[string]bool{}
	for _, e := range events {
		var at mark
		_, err := fmt.Sscanf(e.GetId()[strings.LastIndex(e.GetId(), "/")+1:], "%d-%d", &at.version, &at.index)
		a.must(err)
		if l := last[e.GetRunId()]; at.version < l.version || at == l || at.version == l.version && at.index < l.index {
			a.Errorf("%s follows %v", e.GetId(), l)
		}
		last[e.GetRunId()] = at
		if e.GetRunId() != "" {
			runs[e.GetRunId()] = true
			if open[e.GetRunId()] != e.GetCallId() || e.GetCallId() == "" || e.GetDepth() == 0 || e.GetAgent() == "" || e.GetParentRunId() == "" {
				a.Errorf("%s is outside of its call: %v", e.GetId(), e)
			}
		}
		if s := e.GetAgentStarted(); s != nil {
			open[s.GetRunId()] = s.GetCallId()
		}
		if s := e.GetAgentEnded(); s != nil {
			open[s.GetRunId()] = ""
			if last[s.GetRunId()].version != s.GetChildVersion() {
				a.Errorf("agent.ended of version %d comes after version %d", s.GetChildVersion(), last[s.GetRunId()].version)
			}
		}
	}
	if len(runs) != 4 {
		a.Errorf("%d runs below the root", len(runs))
	}
}
