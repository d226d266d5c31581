package turnserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// again is a bus with the run log as it was before the turn, with the tool host and the workspace
// of a bed.
func (b *bed) again(replies ...modeltest.Reply) *bed {
	b.Helper()
	other := newBedOn(b.TB, steptest.New(b.TB), nil, func(c *turnserver.Config) { c.ToolHost = b.host }, replies...)
	other.host, other.workspace = b.host, b.workspace
	return other
}

func (b *bed) file(name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.workspace, name))
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// TestTheLogHasLostATurn: a turn whose records were lost is made again. A call that was made before gets
// its result; no other one runs before the model has read of those that were made, and the next change asks a
// person once, also with yolo.
func TestTheLogHasLostATurn(t *testing.T) {
	t.Parallel()
	appends := func(id, word string) modeltest.Call {
		return call(id, "run_command", "command", "echo "+word+" | tee -a out")
	}
	for name, c := range map[string]struct {
		made  []modeltest.Call
		told  string // in the message; empty: there is none
		wants map[string]string
		lines string
		known []string // later entries that the state names
	}{
		"the same calls": {[]modeltest.Call{appends("a", "one"), appends("b", "two")}, "", map[string]string{"a": "one", "b": "two"}, "one\ntwo\n", nil},
		"one of them":    {[]modeltest.Call{appends("a", "one")}, "two", map[string]string{"a": "one"}, "one\ntwo\n", []string{"a"}},
		"the last, and a new one": {
			[]modeltest.Call{appends("b", "two"), appends("c", "three")}, "one", map[string]string{"b": "two", "c": "did not run"}, "one\ntwo\n", []string{"b"},
		},
		"an id with other arguments": {[]modeltest.Call{appends("a", "three")}, "one", map[string]string{"a": "did not run"}, "one\ntwo\n", nil},
		"other calls": {
			[]modeltest.Call{appends("x", "three"), call("y", "read_file", "path", "out")}, "two", map[string]string{"x": "did not run", "y": "did not run"}, "one\ntwo\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newBed(t, calls(appends("a", "one"), appends("b", "two")))
			first.run(first.state())
			_, before := first.records()
			if l := before.GetStep().GetSnapshot().GetLedgers(); len(l.GetMarks()) != 1 || l.GetMarks()[0].GetSequence() != 2 || l.GetAsks() {
				t.Fatalf("the log knows %v", l)
			}

			b := first.again(calls(c.made...))
			b.run(b.state())
			journal, outcome := b.records()
			for id, want := range c.wants {
				if got := b.results(journal...)[id]; !strings.Contains(got, want) {
					t.Errorf("call %s: %q", id, got)
				}
			}
			var told []string
			for _, rec := range journal {
				for _, m := range rec.GetAppended() {
					if m.GetRole() == harnessv1.Role_ROLE_USER && rec.GetJournal().GetToolFinished() != nil {
						told = append(told, b.text(m.GetContent()))
					}
				}
			}
			if c.told == "" && len(told) > 0 || c.told != "" && (len(told) != 1 || !strings.Contains(told[0], "It is done: "+c.told)) {
				t.Errorf("the model gets %q", told)
			}
			if got := b.file("out"); got != c.lines {
				t.Errorf("the file has %q", got)
			}
			s := outcome.GetStep().GetSnapshot()
			if l := s.GetLedgers(); l.GetAsks() != (c.told != "") || !slices.Equal(l.GetMarks()[0].GetCalls(), c.known) {
				t.Errorf("the log knows %v", l)
			}
			if c.told == "" {
				return
			}
			next := first.again(calls(call("look", "read_file", "path", "out"), appends("no id", "four")))
			s = proto.CloneOf(s)
			s.Phase, s.Turn, s.MessageCount = harnessv1.Phase_PHASE_EXECUTING, nil, 1 // put stores one message
			next.run(s)
			journal, outcome = next.records()
			s = outcome.GetStep().GetSnapshot()
			if got := next.results(journal...)["look"]; !strings.Contains(got, "one") {
				t.Errorf("a read that follows: %q", got)
			}
			pending := runstate.AwaitedCalls(s)
			if len(pending) != 1 || pending[0].GetKind() != runstate.KindApproval || !strings.Contains(pending[0].GetWhy(), "were lost") || !strings.HasPrefix(pending[0].GetCallId(), "call_again1_") {
				t.Fatalf("the next change waits as %v", pending)
			}
			if s.GetLedgers().GetAsks() {
				t.Error("the change after it asks too")
			}
		})
	}
}

// TestTheLogHasCallsOfAClosedTurn: calls of a turn that was closed without their ends have no number in the
// state, but the conversation has them, so nothing is lost: the next call runs without a message. If
// the conversation has the id with other arguments, the entry is that of a call that was lost.
func TestTheLogHasCallsOfAClosedTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments string // of call a, in the conversation
		lost      bool
	}{
		"the same arguments": {`{"command":"echo one | tee -a out"}`, false},
		"other arguments":    {`{"command":"echo none"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newBed(t, calls(call("a", "run_command", "command", "echo one | tee -a out")))
			first.run(first.state())
			first.records()

			b := first.again(calls(call("b", "run_command", "command", "echo two | tee -a out")))
			s := b.state()
			s.MessageCount, s.TurnCount = 3, 1
			b.Put(&harnessv1.Step{
				From: workflow.Compaction, To: workflow.Turn, Snapshot: s,
				Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}},
			},
				&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)},
				&harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{
					{Id: "a", Name: "run_command", Arguments: content.Inline(c.arguments)},
				}},
				&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "a", Content: content.Inline("Its end is not known.")},
			)
			b.start()
			journal, outcome := b.records()
			want, lines := "two", "one\ntwo\n"
			if c.lost {
				want, lines = "did not run", "one\n"
			}
			if got := b.results(journal...)["b"]; !strings.Contains(got, want) {
				t.Errorf("the call: %q", got)
			}
			if got := b.file("out"); got != lines {
				t.Errorf("the file has %q", got)
			}
			if asks := outcome.GetStep().GetSnapshot().GetLedgers().GetAsks(); asks != c.lost {
				t.Errorf("the next change asks: %t", asks)
			}
		})
	}
}
