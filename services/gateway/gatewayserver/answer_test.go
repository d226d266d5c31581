package gatewayserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func awaited(id, kind string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{CallId: id, Tool: "t", Kind: kind, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
}

func (b *bed) answer(run, id, call, text string) (*harnessv1.SendInputResponse, error) {
	return b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call, Result: content.Inline(text)}}})
}

func TestAnswersToPendingAndOtherCalls(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("client_tool", awaited("c1", "client_tool"), awaited("q1", "question"), awaited("a1", "approval"))
	_, err := b.answer("r1", "i1", "c1", "sunny")
	b.must(err)
	again, err := b.answer("r1", "i1", "c1", "sunny")
	b.must(err)
	if !again.GetExisted() {
		t.Error("the same answer counts twice")
	}
	_, err = b.answer("r1", "i2", "q1", "")
	b.must(err)
	_, err = b.answer("r1", "i3", "c1", "rainy")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	_, err = b.answer("r1", "i4", "missing", "x")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.answer("r1", "i5", "a1", "x")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.approve("r1", "i6", "q1")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.answer("r1", "i7", "", "x")
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	_, err = b.answer("r1", "i8", "a1", strings.Repeat("x", 1<<20+1))
	b.refused(err, codes.ResourceExhausted, "TOO_LARGE")
	_, err = b.answer("r2", "i9", "c1", "x")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	other := b.started("other").park("client_tool", awaited("c9", "client_tool"))
	_, err = b.answer("r1", "i10", "c9", "meant for another run")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	h.holds(2)
	other.holds(0)

	cursor := h.drained()
	h.step("repair", func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor, s.Snapshot.PendingToolCalls = cursor, []*harnessv1.PendingCall{awaited("a1", "approval")}
		s.Snapshot.AnsweredCalls = []uint64{runlog.HashID("c1"), runlog.HashID("q1")}
		s.Snapshot.DrainedItems = []uint64{runlog.HashID("i1"), runlog.HashID("i2")}
	})
	again, err = b.answer("r1", "i1", "c1", "sunny")
	b.must(err)
	if !again.GetExisted() {
		t.Error("the same answer counts twice after it was drained")
	}
	_, err = b.answer("r1", "i11", "c1", "rainy")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	h.holds(2)
}

// If many clients answer one call at the same time, exactly one answer is accepted.
func TestConcurrentAnswersToOneCall(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("client_tool", awaited("c1", "client_tool"))
	var taken atomic.Int64
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			if _, err := b.answer("r1", fmt.Sprint("i", i), "c1", "x"); err == nil {
				taken.Add(1)
			}
		})
	}
	clients.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d answers were taken", taken.Load())
	}
	first := h.inbox()[0].GetId()
	if again, err := b.answer("r1", first, "c1", "x"); err != nil || !again.GetExisted() {
		t.Errorf("the accepted answer is sent again: %v, %v", again, err)
	}
}

// A denial that follows an approval of its tool for the run is refused: the call will
// run.
func TestARefusalAfterAnApprovalForTheRun(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("approval", approvalCall("a1"), approvalCall("a2"), awaited("other", "approval"))
	decide := func(call string, d harnessv1.ApprovalDecision) error {
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1",
			Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{CallId: call, Decision: d}}})
		return err
	}
	b.must(decide("a1", harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN))
	b.refused(decide("a2", harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY), codes.AlreadyExists, "CALL_ANSWERED")
	b.must(decide("other", harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY))
	h.holds(2)
}

// A large answer is stored as a blob, and the model receives all of it.
func TestLargeAnswer(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("client_tool", awaited("c1", "client_tool"))
	large := strings.Repeat("x", 1<<20)
	_, err := b.answer("r1", "i1", "c1", large)
	b.must(err)
	if text := b.blob("r1", h.inbox()[0].GetToolAnswer().GetResult().GetBlob().GetDigest()); text != large {
		t.Errorf("%d bytes are stored", len(text))
	}
}

// A client can answer as soon as it receives the call: it need not wait for the end
// of the turn.
func TestAnswerToAnAnnouncedCall(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").step("turn", nil)
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{}}, nil)
	_, err := b.answer("r1", "i1", "c1", "early")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{Calls: []*harnessv1.PreparedCall{
		{CallId: "c1", Tool: "t", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT},
		{CallId: "a1", Tool: "t", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_ASK},
		{CallId: "r1", Tool: "t", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN},
	}}}}, nil)
	_, err = b.answer("r1", "i1", "c1", "early")
	b.must(err)
	_, err = b.approve("r1", "i2", "a1")
	b.must(err)
	_, err = b.answer("r1", "i3", "r1", "x")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.answer("r1", "i4", "c1", "second")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	h.holds(2)
}

func clientTool(name string) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: name, Description: "d", ParametersSchema: `{"type":"object"}`}
}

// Tools that a start declares are in the run's first state. Tools that an attach
// declares go through the inbox, once.
func TestDeclaredTools(t *testing.T) {
	b := newBed(t, func(cfg *gatewayserver.Config) {
		cfg.Tools = hosting("read_file")
	})
	start := b.start("r1", "do it")
	start.Spec.ClientTools = []*harnessv1.ToolSpec{clientTool("get_weather")}
	start.Spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "get_weather", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}
	_, err := b.client.StartRun(b.ctx, start)
	b.must(err)
	h := b.openRun("r1")
	stored := &harnessv1.ClientTools{}
	b.must(protojson.Unmarshal([]byte(b.blob("r1", h.snapshot.GetClientTools().GetBlob().GetDigest())), stored))
	if tools := stored.GetTools(); len(tools) != 1 || tools[0].GetName() != "get_weather" || tools[0].GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT {
		t.Errorf("stored are %v", tools)
	}
	attach := func(tools ...*harnessv1.ToolSpec) error {
		t.Helper()
		stream, err := b.client.Run(b.ctx)
		b.must(err)
		b.must(stream.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{
			Namespace: b.namespace, RunId: "r1", ClientTools: tools,
		}}}))
		_, err = stream.Recv()
		return err
	}
	b.must(attach(clientTool("get_weather")))
	h.holds(0) // the run has them already
	for range 2 {
		b.must(attach(clientTool("get_weather"), clientTool("get_time")))
	}
	if items := h.inbox(); len(items) == 0 || items[0].GetToolsDeclared().GetTools().GetBlob() == nil {
		t.Errorf("the inbox holds %v", items)
	}
	for name, c := range map[string]struct {
		tools  []*harnessv1.ToolSpec
		code   codes.Code
		reason string
	}{
		"a name that is taken":  {[]*harnessv1.ToolSpec{clientTool("read_file")}, codes.InvalidArgument, "INVALID_FIELD"},
		"the name of the end":   {[]*harnessv1.ToolSpec{clientTool("task_complete")}, codes.InvalidArgument, "INVALID_FIELD"},
		"a name twice":          {[]*harnessv1.ToolSpec{clientTool("a"), clientTool("a")}, codes.InvalidArgument, "INVALID_FIELD"},
		"no name":               {[]*harnessv1.ToolSpec{clientTool("")}, codes.InvalidArgument, "INVALID_FIELD"},
		"a schema that is none": {[]*harnessv1.ToolSpec{{Name: "a", ParametersSchema: `{"type":`}}, codes.InvalidArgument, "INVALID_FIELD"},
		"another origin":        {[]*harnessv1.ToolSpec{{Name: "a", ParametersSchema: `{"type":"object"}`, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS}}, codes.InvalidArgument, "INVALID_FIELD"},
		"too many":              {make([]*harnessv1.ToolSpec, 65), codes.ResourceExhausted, "TOO_LARGE"},
		"too large": {[]*harnessv1.ToolSpec{{Name: "a", Description: strings.Repeat("x", 100<<10), ParametersSchema: `{"type":"object"}`}},
			codes.ResourceExhausted, "TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) {
			b.refused(attach(c.tools...), c.code, c.reason)
			start := b.start("", "do it")
			start.Spec.ClientTools = c.tools
			_, err := b.client.StartRun(b.ctx, start)
			b.refused(err, c.code, c.reason)
		})
	}
}

// TestNamesOfSubAgentsAreNoTools: a start and an attach refuse a name that a tool and a sub-agent would have.
func TestNamesOfSubAgentsAreNoTools(t *testing.T) {
	b := newBed(t, func(cfg *gatewayserver.Config) {
		cfg.Tools = hosting("read_file")
	})
	agent := func(name string) []*harnessv1.SubAgent {
		return []*harnessv1.SubAgent{{Name: "outer", Description: "d", Instructions: "i", Agents: []*harnessv1.SubAgent{{Name: name, Description: "d", Instructions: "i"}}}}
	}
	for name, tools := range map[string][]*harnessv1.ToolSpec{"read_file": nil, "get_weather": {clientTool("get_weather")}} {
		start := b.start("", "do it")
		start.Spec.Agent.Agents, start.Spec.ClientTools = agent(name), tools
		_, err := b.client.StartRun(b.ctx, start)
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	}
	start := b.start("r1", "do it")
	start.Spec.Agent.Agents = agent("looker")
	_, err := b.client.StartRun(b.ctx, start)
	b.must(err)
	stream, err := b.client.Run(b.ctx)
	b.must(err)
	b.must(stream.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{
		Namespace: b.namespace, RunId: "r1", ClientTools: []*harnessv1.ToolSpec{clientTool("looker")},
	}}}))
	_, err = stream.Recv()
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
}

// The budgets of a running run can be changed, but not to less than it has used.
func TestBudgetsOfARunningRun(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").step("turn", func(s *harnessv1.Step) { s.Snapshot.Spent = &harnessv1.Spent{Turns: 7} })
	extend := func(turns uint32) (*harnessv1.ResumeRunResponse, error) {
		return b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "r1", Budgets: &harnessv1.Budgets{Turns: &turns}})
	}
	_, err := extend(7)
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	h.holds(0)
	_, err = extend(8)
	b.must(err)
	h.holds(1)
	resp, err := b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if !resp.GetAlreadyRunning() {
		t.Error("a resume of a running run is stored")
	}
	h.park("budget_exceeded:turns")
	_, err = extend(6)
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	h.holds(1)
}

// hosting lists tools as those of the tool host.
func hosting(names ...string) func(context.Context) ([]*harnessv1.ToolSpec, error) {
	var specs []*harnessv1.ToolSpec
	for _, name := range names {
		specs = append(specs, &harnessv1.ToolSpec{Name: name})
	}
	return func(context.Context) ([]*harnessv1.ToolSpec, error) { return specs, nil }
}
