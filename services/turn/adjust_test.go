package turn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// asking is a failed try that asks for an adjustment.
func asking(kind harnessv1.Adjustment) *model.Error {
	return &model.Error{RetryAfter: -1, Status: 400, Message: "not so", Adjustment: kind}
}

// asked returns the adjustments of the requests of a worker, in order.
func (w *worker) asked() [][]harnessv1.Adjustment {
	var all [][]harnessv1.Adjustment
	for _, a := range w.actions {
		if ask, ok := a.(turn.AskModel); ok {
			kinds := []harnessv1.Adjustment{}
			for _, a := range ask.Adjustments {
				kinds = append(kinds, a.GetAdjustment())
			}
			all = append(all, kinds)
		}
	}
	return all
}

// TestAnAdjustedRequestIsNoTry: a request that is sent again with an adjustment costs no
// try and no wait, is stored, and holds for the rest of the run.
func TestAnAdjustedRequestIsNoTry(t *testing.T) {
	s := snapshot()
	s.Model = "m"
	s.Config.Model.MaxTries = proto.Uint32(1)
	w := newWorker(t, s)
	w.last = []*harnessv1.Message{{Id: 7, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("go")}}
	w.failures = []*model.Error{asking(harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT), asking(harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE)}
	outcome := w.mustEnd()
	if want := []string{"model m", "model m", "model m"}; !slices.Equal(w.effects, want) {
		t.Errorf("effects %v, want %v", w.effects, want)
	}
	if got := w.asked(); len(got) != 3 || len(got[0]) != 0 || len(got[1]) != 1 || len(got[2]) != 2 {
		t.Errorf("the requests have the adjustments %v", got)
	}
	kept := outcome.GetStep().GetSnapshot().GetModelAdjustments()
	if len(kept) != 2 || kept[0].GetModel() != "m" || kept[1].GetThroughMessage() != 7 {
		t.Errorf("the state has %v", kept)
	}
	retry := w.journal[1].GetEvents()[0].GetModelRetry()
	if retry.GetAdjustment() != "wire_chat" || retry.GetWait().AsDuration() != 0 {
		t.Errorf("the event is %v", retry)
	}
}

// TestAnAdjustmentIsMadeOnce: a model that asks for the same again has failed.
func TestAnAdjustmentIsMadeOnce(t *testing.T) {
	s := snapshot()
	s.Model = "m"
	s.ModelAdjustments = []*harnessv1.ModelAdjustment{{Model: "m", Adjustment: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT}}
	w := newWorker(t, s)
	w.failures = []*model.Error{asking(harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT)}
	outcome := w.mustEnd()
	if got := w.asked(); len(got) != 1 || len(got[0]) != 1 {
		t.Errorf("the requests have the adjustments %v", got)
	}
	if kind := outcome.GetStep().GetTurnComplete().GetError().GetKind(); kind != harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR {
		t.Errorf("the turn ended with %s", kind)
	}
}

// TestAdjustmentsBelongToTheirModel: requests to a fallback model have no adjustment of
// the first one.
func TestAdjustmentsBelongToTheirModel(t *testing.T) {
	s := snapshot()
	s.FallbackModels = []string{"other"}
	w := newWorker(t, s)
	w.failures = []*model.Error{asking(harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY), {RetryAfter: -1, Message: "broken"}}
	w.mustEnd()
	if got := w.asked(); len(got) != 3 || len(got[1]) != 1 || len(got[2]) != 0 {
		t.Errorf("the requests have the adjustments %v", got)
	}
}

// TestARefusalLeavesNothing: the fallback answers in the same turn, and what the refusal
// used is counted.
func TestARefusalLeavesNothing(t *testing.T) {
	s := snapshot()
	s.FallbackModels = []string{"other"}
	w := newWorker(t, s)
	first := &model.Response{
		Text: "Half of it", ToolCalls: []*harnessv1.ToolCall{call("a", "read_file", `{"path":"1"}`)},
		FinishReason: "content_filter", Refusal: "cyber", Usage: &harnessv1.Usage{InputTokens: 10, OutputTokens: 5, CostMicroUsd: 3},
	}
	second := response(call("b", "read_file", `{"path":"2"}`))
	second.Usage = &harnessv1.Usage{InputTokens: 100, OutputTokens: 50, CostMicroUsd: 30}
	w.responses = []*model.Response{first, second}
	outcome := w.mustEnd()
	for _, m := range appendedBy(w.journal) {
		if strings.Contains(content.Text(m.GetContent()), "Half") || m.GetToolCallId() == "a" {
			t.Errorf("a refused answer left %v", m)
		}
	}
	spent := outcome.GetStep().GetSnapshot().GetSpent()
	if u := spent.GetUsage(); u.GetInputTokens() != 110 || u.GetOutputTokens() != 55 || u.GetCostMicroUsd() != 33 || spent.GetModelCalls() != 1 {
		t.Errorf("spent %v", spent)
	}
	if !slices.Contains(w.effects, "run b") || slices.Contains(w.effects, "run a") {
		t.Errorf("effects %v", w.effects)
	}
}

// TestARefusalEndsTheTurn: without a fallback the error names the category.
func TestARefusalEndsTheTurn(t *testing.T) {
	w := newWorker(t, snapshot())
	w.response = &model.Response{Text: "Half", FinishReason: "content_filter", Refusal: "cyber"}
	ended := w.mustEnd().GetStep().GetTurnComplete().GetError()
	if ended.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR || !strings.Contains(ended.GetMessage(), "(cyber)") {
		t.Errorf("the turn ended with %v", ended)
	}
}

// TestCutShort: the model gets one message about it. The second time in a row is an error.
func TestCutShort(t *testing.T) {
	w := newWorker(t, snapshot())
	w.response = &model.Response{FinishReason: "length"}
	outcome := w.mustEnd()
	s := outcome.GetStep().GetSnapshot()
	if outcome.GetStep().GetTurnComplete().GetError() != nil || !s.GetTurn().GetCutShort() || s.GetContinuationCount() != 0 {
		t.Fatalf("the first time: %v", outcome.GetStep())
	}
	if last := appendedBy(w.journal); !strings.Contains(content.Text(last[len(last)-1].GetContent()), "length limit") {
		t.Errorf("the messages are %v", last)
	}
	next := snapshot()
	next.Turn = s.GetTurn()
	w = newWorker(t, next)
	w.response = &model.Response{FinishReason: "length"}
	if ended := w.mustEnd().GetStep().GetTurnComplete().GetError(); ended.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR {
		t.Errorf("the second time: %v", ended)
	}
	w = newWorker(t, next)
	w.response = &model.Response{Text: "Now.", FinishReason: "length"}
	if ended := w.mustEnd().GetStep().GetTurnComplete().GetError(); ended != nil {
		t.Errorf("an answer with a text ended the turn: %v", ended)
	}
}

// TestARequestDoesNotEndWithAnAnswer: what follows an answer without calls is stored.
func TestARequestDoesNotEndWithAnAnswer(t *testing.T) {
	said := &harnessv1.Message{Id: 8, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Well.")}
	asked := &harnessv1.Message{Id: 9, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Go.")}
	for name, c := range map[string]struct {
		last []*harnessv1.Message
		want int
	}{
		"an answer":          {[]*harnessv1.Message{said}, 1},
		"followed by a user": {[]*harnessv1.Message{said, asked}, 0},
	} {
		s := snapshot()
		s.ToldTurn, s.Turn = 99, &harnessv1.TurnState{Number: 1}
		w := newWorker(t, s)
		w.last = c.last
		w.mustEnd()
		if got := len(w.journal[0].GetAppended()); got != c.want {
			t.Errorf("%s: %d messages were appended, want %d", name, got, c.want)
		}
	}
}

// TestOnlyToolsOfServersAreLeftOut: a model that refuses the definition of one gets the request without it,
// for the rest of the run; one that refuses a tool of the harness, or too many tools, has failed.
func TestOnlyToolsOfServersAreLeftOut(t *testing.T) {
	refusing := func(tool string) *model.Error {
		e := asking(harnessv1.Adjustment_ADJUSTMENT_NO_TOOL)
		e.Tool = tool
		return e
	}
	for name, c := range map[string]struct {
		failures []*model.Error
		before   int
		requests int
		failed   bool
	}{
		"two of a server":     {[]*model.Error{refusing("mcp__s__a"), refusing("mcp__s__b")}, 0, 3, false},
		"one, again":          {[]*model.Error{refusing("mcp__s__a"), refusing("mcp__s__a")}, 0, 2, true},
		"one of the harness":  {[]*model.Error{refusing("work_complete")}, 0, 1, true},
		"one that is unknown": {[]*model.Error{refusing("")}, 0, 1, true},
		"too many":            {[]*model.Error{refusing("mcp__s__a")}, 16, 1, true},
	} {
		s := snapshot()
		s.Model = "m"
		for i := range c.before {
			s.ModelAdjustments = append(s.ModelAdjustments, &harnessv1.ModelAdjustment{Model: "m", Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_TOOL, Tool: fmt.Sprint("mcp__s__", i)})
		}
		w := newWorker(t, s)
		w.state.Offer.Servers = mcptool.NewIndex(&harnessv1.McpTools{Tools: []*harnessv1.McpTool{
			{Server: "s", Spec: &harnessv1.ToolSpec{Name: "mcp__s__a"}}, {Server: "s", Spec: &harnessv1.ToolSpec{Name: "mcp__s__b"}},
		}})
		w.failures = c.failures
		outcome := w.mustEnd()
		got := w.asked()
		failed := outcome.GetStep().GetTurnComplete().GetError() != nil
		if len(got) != c.requests || failed != c.failed {
			t.Errorf("%s: %d requests, failed %v", name, len(got), failed)
		}
		if kept := outcome.GetStep().GetSnapshot().GetModelAdjustments(); !failed && (len(kept) != 2 || kept[0].GetTool() != "mcp__s__a" || kept[1].GetTool() != "mcp__s__b") {
			t.Errorf("%s: the state has %v", name, kept)
		}
	}
}

// TestRefusedToolsNeedNoTokens: what is estimated for the next request is without the tools that the
// model refuses, before this step or in it.
func TestRefusedToolsNeedNoTokens(t *testing.T) {
	noTool := harnessv1.Adjustment_ADJUSTMENT_NO_TOOL
	s := snapshot()
	s.Model = "m"
	s.ModelAdjustments = []*harnessv1.ModelAdjustment{
		{Model: "m", Adjustment: noTool, Tool: "mcp__s__a"}, {Model: "m", Adjustment: noTool, Tool: "mcp__s__gone"}, {Model: "other", Adjustment: noTool, Tool: "mcp__s__c"},
	}
	w := newWorker(t, s)
	spec := func(name string) *harnessv1.ToolSpec {
		return &harnessv1.ToolSpec{Name: name, Description: strings.Repeat("word ", 100), ParametersSchema: `{"type":"object"}`}
	}
	refused := []*harnessv1.ToolSpec{spec("mcp__s__a"), spec("mcp__s__b")}
	specs := append(refused[:2:2], spec("mcp__s__c"))
	set, err := tool.NewSet(slices.Concat(w.state.Offer.Specs(), specs))
	if err != nil {
		t.Fatal(err)
	}
	var servers []*harnessv1.McpTool
	for _, spec := range specs {
		servers = append(servers, &harnessv1.McpTool{Server: "s", Spec: spec})
	}
	w.state.Offer.Set, w.state.Offer.Tokens = set, runstate.ToolTokens(set.Specs())
	w.state.Offer.Servers = mcptool.NewIndex(&harnessv1.McpTools{Tools: servers})
	e := asking(noTool)
	e.Tool = "mcp__s__b"
	w.failures = []*model.Error{e}
	if before := w.state.RefusedTools(); len(before) != 1 || before[0].GetName() != "mcp__s__a" {
		t.Errorf("refused before: %v", before)
	}
	want := w.state.Offer.Tokens - runstate.ToolTokens(refused)
	if got := w.mustEnd().GetStep().GetSnapshot().GetTokenBudget().GetToolTokens(); got != want {
		t.Errorf("%d tokens, want %d of %d", got, want, w.state.Offer.Tokens)
	}
}
