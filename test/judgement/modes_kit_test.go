package judgement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	modesAllow = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
	modesAsks  = harnessv1.ToolDecision_TOOL_DECISION_ASK
	modesDeny  = harnessv1.ToolDecision_TOOL_DECISION_DENY

	modesOnce   = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	modesForRun = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	modesRefuse = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY
)

var (
	modesDone = live.Call("work_complete", live.Args{"summary": "done"})
	modesSoon = durationpb.New(time.Millisecond)
)

// modesIn starts a run in a mode, with custom modes.
func modesIn(name string, own ...*harnessv1.ModeSpec) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Mode, spec.Agent.Modes = name, own }
}

// modesAsk turns yolo off, so that calls can ask.
func modesAsk(spec *harnessv1.RunSpec) { spec.Config.Tools.Yolo = proto.Bool(false) }

func modesPolicy(rules ...*harnessv1.ToolRule) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Tools = append(spec.Agent.Tools, rules...) }
}

func modesTo(name string) *harnessv1.SendInputRequest {
	return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: name}}}
}

func modesMessage(text string) *harnessv1.SendInputRequest {
	return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)},
	}}
}

// modesWaiting is the call that waits; there has to be one.
func modesWaiting(r *live.Run) string {
	r.T.Helper()
	pending := r.State().GetPendingToolCalls()
	if len(pending) != 1 {
		r.T.Fatalf("%d calls wait, want one: %v", len(pending), pending)
	}
	return pending[0].GetCallId()
}

// modesApprove answers the call that a run waits for.
func modesApprove(r *live.Run, s *live.Transcript, decision harnessv1.ApprovalDecision, reason string) {
	r.T.Helper()
	if s.Result.GetReason().GetKind() != "approval" {
		r.T.Fatalf("the run does not wait for an approval: %s\n%s", s.Verdict(), s)
	}
	if err := jitSend(r, modesDecision(modesWaiting(r), decision, reason)); err != nil {
		r.T.Fatal(err)
	}
}

func modesDecision(id string, decision harnessv1.ApprovalDecision, reason string) *harnessv1.SendInputRequest {
	return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{
		Approval: &harnessv1.Approval{CallId: id, Decision: decision, Reason: reason},
	}}
}

// modesUntilCall returns once a call of the run has started.
func modesUntilCall(r *live.Run) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), live.Limit)
	defer cancel()
	stream, err := live.Gateway(r.T).WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID, NoDeltas: true})
	for err == nil {
		var m *harnessv1.WatchRunResponse
		if m, err = stream.Recv(); m.GetUpdate().GetEvent().GetToolCall() != nil {
			return
		}
	}
	r.T.Fatal(err)
}

// modesDenied are the calls that were not allowed, such as "1 write_file".
func modesDenied(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if d := e.GetToolDenied(); d != nil {
			all = append(all, fmt.Sprintf("%d %s", e.GetTurnNumber(), d.GetTool()))
		}
	}
	return all
}

// modesAsked returns the calls that asked for approval.
func modesAsked(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if a := e.GetApprovalRequested(); a != nil {
			all = append(all, fmt.Sprintf("%d %s", e.GetTurnNumber(), a.GetTool()))
		}
	}
	return all
}

// modesHas fails the test unless request n has the available tools and not the missing ones.
func modesHas(t *testing.T, s *live.Transcript, n int, available, missing string) {
	t.Helper()
	have := jitTools(s, n)
	for _, name := range strings.Fields(available) {
		if !slices.Contains(have, name) {
			t.Errorf("request %d has the tools %[3]v without %[2]s", n+1, name, have)
		}
	}
	for _, name := range strings.Fields(missing) {
		if slices.Contains(have, name) {
			t.Errorf("request %d has the tool %s", n+1, name)
		}
	}
}

// modesSays fails the test unless a text holds all words.
func modesSays(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q: %s", what, w, text)
		}
	}
}

// modesDoes is a model that does something before it answers request n, from 0.
func modesDoes(m live.Model, before map[int]func()) live.Model {
	return func(n int, req *modeltest.Request) modeltest.Reply {
		if do := before[n]; do != nil {
			do()
		}
		return m(n, req)
	}
}
