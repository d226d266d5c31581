package turn_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// mixed returns a worker whose model makes calls that run at the same time, calls
// that run alone, and one of a tool that does not exist.
func mixed(t *testing.T) *worker {
	return newWorker(t, snapshot(),
		call("a", "read_file", `{"path":"1"}`), call("b", "read_file", `{"path":"2"}`), call("c", "nothing", `{}`),
		call("d", "write_file", `{"path":"3"}`), call("e", "read_file", `{"path":"4"}`))
}

// TestTurnContinuesFromAnyRecord kills the worker after each record of the journal
// and lets another one continue: every effect happens, no request is sent after a
// response is stored, no call with a result is run again, and the turn ends as it
// would have ended without the death.
func TestTurnContinuesFromAnyRecord(t *testing.T) {
	whole := mixed(t)
	want := whole.mustEnd()
	for dies := range len(whole.journal) {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			w := mixed(t)
			w.dies = dies
			if _, err := w.work(); !errors.Is(err, errDied) {
				t.Fatalf("got %v, want the worker to die", err)
			}
			done := map[string]bool{}
			for _, rec := range w.journal {
				if rec.GetJournal().GetModelResponded() != nil {
					done["model "] = true
				}
				if f := rec.GetJournal().GetToolFinished(); f != nil {
					done["run "+f.GetCallId()] = true
				}
			}
			w.dies, w.effects = -1, nil
			got := w.mustEnd()
			for _, effect := range w.effects {
				if done[effect] {
					t.Errorf("%s is repeated", effect)
				}
				done[effect] = true
			}
			if len(done) != len(whole.effects) {
				t.Errorf("the effects are %v, want %v", done, whole.effects)
			}
			if !bytes.Equal(encode(t, got), encode(t, want)) {
				t.Errorf("the turn ends as\n%v\nwant\n%v", got, want)
			}
			for i, m := range appendedBy(w.journal) {
				if want := uint64(i) + 3; m.GetId() != want {
					t.Errorf("message %d has the id %d", want, m.GetId())
				}
			}
		})
	}
}

func TestUnfinishedGroupsParallelCalls(t *testing.T) {
	w := mixed(t)
	w.dies = 3 // claimed, responded, started
	_, _ = w.work()
	var groups []string
	for _, g := range w.p.Unfinished() {
		name := ""
		for _, c := range g {
			name += c.ID
		}
		groups = append(groups, name)
	}
	if got := fmt.Sprint(groups); got != "[ab d e]" {
		t.Errorf("groups %s", got)
	}
	if len(w.p.Unstarted()) != 0 || w.p.Ledgers["a"] != "ledger" || w.p.NeedsModel() {
		t.Errorf("progress %+v", w.p)
	}
}

func TestClaimNamesFormerWorker(t *testing.T) {
	w := mixed(t)
	w.dies = 2
	_, _ = w.work()
	w.dies = 1
	_, _ = w.work()
	again := w.journal[2].GetEvents()
	if takeover := again[0].GetWorkerTakeover(); len(again) != 1 || takeover.GetAttempt() != 2 || takeover.GetFormer() != "w0" {
		t.Errorf("events of the second claim: %v", again)
	}
	if start := w.journal[0].GetEvents()[0].GetStepStart(); start.GetAttempt() != 1 || start.GetResumed() {
		t.Errorf("events of the first claim: %v", w.journal[0].GetEvents())
	}
}

// TestReportedUsageReplacesEstimate: what the provider reports replaces the estimate
// up to and including the response, without what a compaction had freed; what follows it is
// counted in bytes until the next report.
func TestReportedUsageReplacesEstimate(t *testing.T) {
	w := mixed(t)
	s := w.state.Snapshot
	s.TokenBudget = &harnessv1.TokenBudget{UnreportedBytes: 1000, FreedTokens: 600}
	s.ContinuationCount, s.FailedTries = 2, 4
	w.state.Offer.Tokens = 55
	got := w.mustEnd().GetStep().GetSnapshot()
	var followed uint64
	for _, m := range appendedBy(w.journal)[1:] {
		followed += runstate.MessageBytes(m)
	}
	want := &harnessv1.TokenBudget{ReportedTokens: 110, ReportedMessages: 3, UnreportedBytes: followed, ToolTokens: 55}
	if !proto.Equal(got.GetTokenBudget(), want) || followed == 0 {
		t.Errorf("budget %v, want %v", got.GetTokenBudget(), want)
	}
	if got.GetSpent().GetToolCalls() != 5 || got.GetSpent().GetModelCalls() != 1 || got.GetContinuationCount() != 0 || got.GetFailedTries() != 0 {
		t.Errorf("spent %v", got)
	}
	if got.GetTurnCount() != 1 || content.Text(got.GetAnswer()) != "text" || !got.GetTurn().GetCalledTools() {
		t.Errorf("turn %v", got)
	}
}

func TestCallWithUnknownEndIsLeftToRepair(t *testing.T) {
	w := mixed(t)
	w.unknown = map[string]bool{"d": true}
	outcome := w.mustEnd()
	pending := outcome.GetStep().GetSnapshot().GetPendingToolCalls()
	if len(pending) != 1 || pending[0].GetCallId() != "d" || pending[0].GetClass() != harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN ||
		pending[0].GetTurnNumber() != 1 || outcome.GetStep().GetTurnComplete().GetAwaiting() {
		t.Errorf("pending %v", pending)
	}
}

// TestInterruptKillsCallsOfAbortedTurn: a hook that has ended the turn does not keep
// an interrupt from killing the calls that still run.
func TestInterruptKillsCallsOfAbortedTurn(t *testing.T) {
	s := snapshot()
	s.Config.Hooks = &harnessv1.HookConfig{Enabled: proto.Bool(true)}
	s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
		Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_ABORT,
	}}}
	for _, interrupted := range []bool{true, false} {
		w := newWorker(t, s, call("a", "read_file", `{"path":"1"}`), call("b", "read_file", `{"path":"2"}`))
		w.hook = func(hook.Point) hook.Result {
			return hook.Result{Action: harnessv1.HookAction_HOOK_ACTION_ABORT, HookID: "h", Reason: "enough"}
		}
		w.stops = func(action turn.Action) bool {
			if _, waits := action.(turn.AwaitCall); !waits || w.p.Abort == "" {
				return false
			}
			w.p.Stop(errInterrupted, interrupted)
			return true
		}
		outcome, err := w.work()
		if killed := slices.Contains(w.effects, "kill [b]"); killed != interrupted {
			t.Errorf("interrupted is %t, and the effects are %v", interrupted, w.effects)
		}
		ended := outcome.GetStep().GetTurnComplete()
		if interrupted && (err != nil || !ended.GetInterrupted() || !strings.Contains(ended.GetError().GetMessage(), "enough")) {
			t.Errorf("the turn ends as %v with %v", ended, err)
		}
		if !interrupted && !errors.Is(err, errInterrupted) {
			t.Errorf("without the step the turn ends as %v with %v", ended, err)
		}
	}
}
