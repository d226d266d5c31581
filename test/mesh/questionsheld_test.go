package mesh

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// older makes the server of a run speak a protocol before 2026-07-28, and marks its process.
func older(mark string) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		for _, server := range s.GetAgent().GetMcp() {
			server.Env[servertest.Old], server.Env["MARK"] = "1", mark
		}
	}
}

// resultOf returns the result of the call of a run's server.
func resultOf(t *testing.T, m *meshtest.Mesh, run runlog.Run, tool string) (text string, failed bool) {
	t.Helper()
	for _, e := range m.Entries(run) {
		for _, message := range e.Record.GetAppended() {
			if message.GetRole() == harnessv1.Role_ROLE_TOOL && message.GetToolName() == tool {
				text, failed = content.Text(message.GetContent()), message.GetIsError()
			}
		}
	}
	return text, failed
}

// TestSystemQuestionsDuringCalls: a server of an older protocol gets the answer of a person while its call
// runs, although every process but the one with the call in flight is killed meanwhile. If that is
// killed, if the run is interrupted, or if no answer comes, the call ends once, and its result
// reports how.
func TestSystemQuestionsDuringCalls(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	ctx := t.Context()
	const accepted = "asking form\nanswered form {\"trip\":{\"action\":\"accept\",\"content\":{\"city\":\"Rome\",\"nights\":2}}}\n"
	answer := func(run runlog.Run, call *harnessv1.PendingCall) {
		if _, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
			return m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: run.ID, RequestId: "a", Input: &harnessv1.SendInputRequest_ToolAnswer{
				ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: content.Inline(`{"city":"Rome","nights":2}`)},
			}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	kill := func(roles ...string) {
		for _, role := range roles {
			m.Process(role).Kill()
		}
		for _, role := range roles {
			m.Start(role)
		}
		for _, role := range roles {
			m.AwaitReady(role)
		}
	}
	var others []string
	for _, role := range meshtest.Roles {
		if role != "toolhost" {
			others = append(others, role)
		}
	}
	if len(others) == len(meshtest.Roles) {
		t.Fatal("no role is the tool host")
	}
	for _, c := range []struct {
		name   string
		change func(*harnessv1.RunSpec)
		end    func(run runlog.Run, call *harnessv1.PendingCall)
		status harnessv1.RunStatus
		lines  string
		result string
		failed bool
	}{
		{
			name: "answered", status: harnessv1.RunStatus_RUN_STATUS_DONE, lines: accepted, result: "after state of form",
			end: func(run runlog.Run, call *harnessv1.PendingCall) { kill(others...); answer(run, call) },
		},
		{
			name: "lost", status: harnessv1.RunStatus_RUN_STATUS_DONE, lines: "asking form\n", result: "Its effect is unknown", failed: true,
			end: func(run runlog.Run, call *harnessv1.PendingCall) { kill("toolhost"); answer(run, call) },
		},
		{
			name: "interrupted", status: harnessv1.RunStatus_RUN_STATUS_PARKED, lines: "asking form\n", result: "The run was interrupted before this call was answered.", failed: true,
			end: func(run runlog.Run, _ *harnessv1.PendingCall) {
				if _, err := m.Client().InterruptRun(ctx, &harnessv1.InterruptRunRequest{RunId: run.ID, RequestId: "i"}); err != nil {
					t.Fatal(err)
				}
				waittest.Eventually(t, "it is interrupted", func() bool {
					entries := m.Entries(run)
					return entries[len(entries)-1].Record.GetStep().GetSnapshot().GetStopReason().GetKind() == "interrupted"
				})
			},
		},
		{
			name: "expired", status: harnessv1.RunStatus_RUN_STATUS_DONE, lines: "asking form\nanswered form {\"trip\":{\"action\":\"cancel\"}}\n", result: `{"action":"cancel"}`,
			change: func(s *harnessv1.RunSpec) { s.Config.Tools.AnswerTimeout = durationpb.New(1500 * time.Millisecond) },
			end:    func(runlog.Run, *harnessv1.PendingCall) {},
		},
	} {
		changes := []func(*harnessv1.RunSpec){older("during-" + c.name)}
		if c.change != nil {
			changes = append(changes, c.change)
		}
		run, lines := startQuestioned(ctx, t, m, "during-"+c.name, "form", changes...)
		call := asked(ctx, t, m, run)
		if !runstate.Held(call) || call.GetDeadline().AsTime().After(time.Now().Add(10*time.Minute)) {
			t.Errorf("%s: it waits with %v", c.name, call)
		}
		c.end(run, call)
		if c.status == harnessv1.RunStatus_RUN_STATUS_DONE {
			m.Ended(run, 0)
		}
		if left := holding("MARK=during-" + c.name); c.name == "interrupted" && len(left) > 0 {
			t.Errorf("the processes %v are left when the run is interrupted", left)
		}
		text, failed := resultOf(t, m, run, call.GetTool())
		entries := m.Entries(run)
		status := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetStatus()
		if lines() != c.lines || !strings.Contains(text, c.result) || failed != c.failed || status != c.status {
			t.Errorf("%s: %v, lines %q, result %q (%v)", c.name, status, lines(), text, failed)
		}
	}
}
