package mesh

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// steered is what happens to a run that waits for its first summary, and the event that
// shows that it was handled.
var steered = []struct {
	name    string
	send    func(d *driver) error
	handled func(e *harnessv1.Event) bool
}{
	{"interrupt", func(d *driver) error {
		_, err := d.client.InterruptRun(d.ctx, &harnessv1.InterruptRunRequest{RunId: d.run.ID, RequestId: "stop"})
		return err
	}, func(e *harnessv1.Event) bool { return e.GetRunInterrupted() != nil }},
	{"cancel", func(d *driver) error {
		_, err := d.client.CancelRun(d.ctx, &harnessv1.CancelRunRequest{RunId: d.run.ID, RequestId: "enough"})
		return err
	}, func(e *harnessv1.Event) bool { return e.GetRunCancelled() != nil }},
	{"message", func(d *driver) error {
		_, err := d.client.SendInput(d.ctx, &harnessv1.SendInputRequest{RunId: d.run.ID, RequestId: "message", Input: &harnessv1.SendInputRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Content: content.Inline("Mind the gap.")},
		}})
		return err
	}, func(e *harnessv1.Event) bool { return e.GetInputAccepted().GetKind() == "user_message" }},
}

// handledWithin is less than a run waits before it reads its inbox without a poke.
const handledWithin = 3 * time.Second

// TestSystemWaitingRunsAreSteered interrupts a run that waits for a summary at blocking pressure,
// cancels it, and sends it a message, while the summarizer hangs. Each is handled
// immediately. With its summary the run then continues to its end.
func TestSystemWaitingRunsAreSteered(t *testing.T) {
	t.Parallel()
	m, s := startSummarizing(t, meshtest.Config{Takeover: time.Minute}) // so that no heartbeat comes to help
	for _, c := range steered {
		answer := make(chan struct{})
		s.reset(func(n int) {
			if n == 1 {
				<-answer
			}
		})
		own, asked, took := compacted, time.Time{}, time.Duration(0)
		own.drive = func(d *driver, e *harnessv1.Event) {
			switch {
			case asked.IsZero() && e.GetCompactionStarted().GetJob() != "":
				d.awaitWaiting()
				asked = time.Now()
				d.must(c.send(d))
			case took == 0 && c.handled(e):
				took = time.Since(asked)
				if !d.summaryPending() {
					t.Errorf("%s: the run does not keep its job", c.name)
				}
				close(answer)
				if c.name == "interrupt" {
					_, err := d.client.ResumeRun(d.ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: "go"})
					d.must(err)
				}
			}
		}
		if c.name == "cancel" {
			own.cancelled = true
		}
		d, entries := own.through(t.Context(), t, m, "steered-"+c.name)
		t.Logf("%s: handled after %s", c.name, took)
		if took == 0 || took > handledWithin {
			t.Errorf("%s: handled after %s", c.name, took)
		}
		d.ctx = t.Context()
		waittest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
		if own.cancelled {
			continue
		}
		d.wellSummarized(entries)
		s.called(t, c.name, 1, 0)
		if c.name == "message" && !slices.ContainsFunc(entries, func(e runlog.Entry) bool {
			return slices.ContainsFunc(e.Record.GetAppended(), func(m *harnessv1.Message) bool { return content.Text(m.GetContent()) == "Mind the gap." })
		}) {
			t.Error("the message is not in the conversation")
		}
	}
}

// newest returns the newest step of the driver's run.
func (d *driver) newest() *harnessv1.Step {
	d.t.Helper()
	view, err := d.m.Log().View(d.ctx, d.run, 0)
	d.must(err)
	return view.Step.Record.GetStep()
}

// awaitWaiting waits until the run waits for a summary.
func (d *driver) awaitWaiting() {
	d.t.Helper()
	waittest.Eventually(d.t, "the run waits", func() bool {
		step := d.newest()
		return step.GetFrom() == workflow.Compaction && step.GetTo() == workflow.Compaction
	})
}

// summaryPending reports whether the run has a job that has not ended.
func (d *driver) summaryPending() bool {
	d.t.Helper()
	return len(d.newest().GetSnapshot().GetCompactionPlan().GetJobs()) == 1
}

// slowSummary is how long the summarizer of TestSystemTurnsCommitDuringASummary takes, and
// slowTurn the model: as long as usual for a summary, and a third of a usual turn.
const (
	slowSummary = "10s"
	slowTurn    = "500ms"
)

// TestSystemTurnsCommitDuringASummary: at soft pressure a summary is made in the background. While
// the summarizer works for ten seconds at least three turns commit, and after it their
// messages are shown unchanged.
func TestSystemTurnsCommitDuringASummary(t *testing.T) {
	t.Parallel()
	const turns = 34
	slow := scenario{name: "slow", lines: turns, edit: func(s *harnessv1.RunSpec) {
		compacted.edit(s)
		c := s.GetConfig().GetContext()
		c.Summarizer, c.SoftThreshold, c.BlockingThreshold = nil, proto.Float64(0.6), proto.Float64(0.95)
	}}
	slow.script = strings.ReplaceAll(printing(turns), "  - {text:", "  - {delay: "+slowTurn+", text:") +
		"jobs:\n  summarize:\n    - {delay: " + slowSummary + ", answer: {facts: [{text: The log is long.}]}}\n"
	slow.script = strings.ReplaceAll(slow.script, "1 100'", "1 30'")
	m := meshtest.Start(t, bin, meshtest.Config{})
	d, entries := slow.through(t.Context(), t, m, "slow")
	sound(t, d, entries)
	d.nothingLost(entries)
	asked, applied := d.firstSummary(entries)
	turn := func(e runlog.Entry) uint32 { return e.Record.GetStep().GetSnapshot().GetTurnCount() }
	if n := turn(applied) - turn(asked); n < 3 {
		t.Errorf("%d turns were committed while the summary was made", n)
	}
	through := applied.Record.GetStep().GetSnapshot().GetCompactionPlan().GetSummary().GetThroughMessage()
	during := d.messagesOf(entries, asked, applied)
	if len(during) < 6 {
		t.Fatalf("%d messages were appended while the summary was made", len(during))
	}
	shown, err := d.client.GetContext(context.WithoutCancel(t.Context()), &harnessv1.GetContextRequest{RunId: d.run.ID, Version: applied.Header.Version + 1, PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	items := map[uint64]*harnessv1.ContextItem{}
	for _, item := range shown.GetItems() {
		items[item.GetFirstMessage()] = item
	}
	for _, m := range during {
		if m.GetId() <= through {
			t.Errorf("message %d was appended while the summary was made, which replaces the messages up to %d", m.GetId(), through)
		}
		if item := items[m.GetId()]; item == nil || item.GetAction() != harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED {
			t.Errorf("message %d is shown as %v", m.GetId(), item)
		}
	}
}

// firstSummary returns the steps of compaction in which the first summary was requested and
// in which it was applied.
func (d *driver) firstSummary(entries []runlog.Entry) (asked, applied runlog.Entry) {
	d.t.Helper()
	for _, e := range entries {
		plan := e.Record.GetStep().GetSnapshot().GetCompactionPlan()
		if asked.Record == nil && len(plan.GetJobs()) > 0 {
			asked = e
		}
		if plan.GetSummary() != nil {
			return asked, e
		}
	}
	d.t.Fatalf("%s: no summary was applied", d.run)
	return asked, applied
}

// messagesOf returns the messages that were appended after one record and before another.
func (d *driver) messagesOf(entries []runlog.Entry, after, before runlog.Entry) []*harnessv1.Message {
	var all []*harnessv1.Message
	for _, e := range entries {
		if e.Sequence > after.Sequence && e.Sequence < before.Sequence {
			all = append(all, e.Record.GetAppended()...)
		}
	}
	return all
}
