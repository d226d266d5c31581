// Package rejudge makes the decisions about judged work again, from a log alone, and compares
// them with the stored ones: the classification of the work, the alerts about a text, and verdict,
// scores, retry and delivery of each attempt.
//
// A decision is made from the step before it and from the observations that its own step stores.
// The times that it read are not stored by themselves; they are taken from the state, or are
// those of the commit.
package rejudge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Log is a run of which each record is checked once, in order.
type Log struct {
	// Blob returns a blob of the run. Nil: the log has none.
	Blob func(digest string) ([]byte, error)

	step         runlog.Entry              // the newest step
	responded    *harnessv1.ModelResponded // of the turn since
	conversation conversation.Conversation
	parts        runstate.Parts
	decisions    int
}

// Decisions returns how many decisions about judged work were made again.
func (l *Log) Decisions() int { return l.decisions }

// Add checks the next record and returns the first difference from the decisions; empty if there is none.
func (l *Log) Add(e runlog.Entry) string {
	wrong := l.check(e)
	l.conversation.Fold(e.Record)
	if r := e.Record.GetJournal().GetModelResponded(); r != nil {
		l.responded = r
	}
	if e.Record.GetStep() != nil {
		l.step, l.responded = e, nil
	}
	if wrong != "" {
		wrong = fmt.Sprintf("version %d: %s", e.Header.Version, wrong)
	}
	return wrong
}

func (l *Log) check(e runlog.Entry) string {
	before, step := l.step.Record.GetStep(), e.Record.GetStep()
	if responded := e.Record.GetJournal().GetModelResponded(); responded != nil && before.GetSnapshot().GetQuality() != nil {
		l.decisions++
		return l.alerts(e.Record, responded)
	}
	if step == nil || before == nil || step.GetSnapshot().GetExpireTime() != nil ||
		step.GetSnapshot().GetQuality() == nil && before.GetSnapshot().GetQuality() == nil {
		return ""
	}
	decide := map[string]func(*harnessv1.StepInput, *agent.Definition) (*harnessv1.StepOutput, error){
		stopdecision.Name: stopdecision.DecideWith,
		repair.Name: func(in *harnessv1.StepInput, d *agent.Definition) (*harnessv1.StepOutput, error) {
			return repair.DecideWith(in, d, &l.conversation)
		},
	}[step.GetFrom()]
	if decide == nil || before.GetTo() != step.GetFrom() { // the latter wakes the run, or ends it from outside
		return l.kept(step)
	}
	l.decisions++
	return l.decideAgain(e, decide)
}

// kept: an executor that does not judge changes nothing of the state, and a turn adds only what its response and
// its results have.
func (l *Log) kept(step *harnessv1.Step) string {
	before, after := proto.CloneOf(l.step.Record.GetStep().GetSnapshot().GetQuality()), step.GetSnapshot().GetQuality()
	if before != nil && step.GetFrom() == turn.Name {
		before.Results = after.GetResults()
		before.AttemptChars += l.responded.GetTextChars()
		before.Marked = before.GetMarked() || l.responded.GetMarked()
		before.Checkpoints = quality.Passed(before.GetAttemptChars(), before.GetCheckpoints())
		before.Refused = before.GetRefused() || slices.ContainsFunc(l.responded.GetAlerts(), refusal)
	}
	return differ("the state of quality", before, after)
}

// alerts reads the text of a response again.
func (l *Log) alerts(rec *harnessv1.Record, responded *harnessv1.ModelResponded) string {
	snapshot := l.step.Record.GetStep().GetSnapshot()
	var written, text string
	for _, c := range turn.Written(snapshot, &l.conversation) {
		part, err := l.text(c)
		if err != nil {
			return err.Error()
		}
		written += part
	}
	for _, m := range rec.GetAppended() {
		if m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			part, err := l.text(m.GetContent())
			if err != nil {
				return err.Error()
			}
			text += part
		}
	}
	var found []*harnessv1.QualityAlert
	if m := turn.NewMonitor(snapshot, written); m != nil {
		found = m.Add(text)
	}
	var reported []*harnessv1.QualityAlert
	for _, e := range rec.GetEvents() {
		if e.GetQualityAlert() != nil {
			reported = append(reported, e.GetQualityAlert())
		}
	}
	for what, stored := range map[string][]*harnessv1.QualityAlert{"the alerts": responded.GetAlerts(), "the reported alerts": reported} {
		if wrong := differ(what, &harnessv1.ModelResponded{Alerts: found}, &harnessv1.ModelResponded{Alerts: stored}); wrong != "" {
			return wrong
		}
	}
	if n := uint64(utf8.RuneCountInString(text)); responded.GetTextChars() != n || responded.GetMarked() != quality.HasMarker(text) {
		return fmt.Sprintf("the text has %d characters, marked %v: stored %d, %v", n, quality.HasMarker(text), responded.GetTextChars(), responded.GetMarked())
	}
	return ""
}

func (l *Log) text(c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	data, err := l.blob(ref)
	return string(data), err
}

func (l *Log) blob(ref *harnessv1.BlobRef) ([]byte, error) {
	if l.Blob == nil {
		return nil, fmt.Errorf("blob %s is not there", ref.GetDigest())
	}
	return l.Blob(ref.GetDigest())
}

// decideAgain makes the decision of a step again.
func (l *Log) decideAgain(e runlog.Entry, decide func(*harnessv1.StepInput, *agent.Definition) (*harnessv1.StepOutput, error)) string {
	step := e.Record.GetStep()
	in, definition, err := l.input(e)
	if err != nil {
		return err.Error()
	}
	out, err := decide(in, definition)
	if err != nil {
		return "cannot be decided again: " + err.Error()
	}
	made := out.GetOutcome().GetStep()
	if made == nil {
		return fmt.Sprintf("cannot be decided again from what is stored: %v", out)
	}
	if made.GetTo() != step.GetTo() {
		return fmt.Sprintf("is addressed to %q; decided again, to %q", step.GetTo(), made.GetTo())
	}
	for _, wrong := range []string{
		differ("the state of quality", made.GetSnapshot().GetQuality(), step.GetSnapshot().GetQuality()),
		differ("the verdict of the result", made.GetResult().GetQuality(), step.GetResult().GetQuality()),
		differ("the end", end(made), end(step)),
		sameEvents(out.GetOutcome().GetEvents(), e.Record.GetEvents()),
		sameContent("the answer", made.GetSnapshot().GetAnswer(), step.GetSnapshot().GetAnswer()),
		sameContent("the summary", made.GetSnapshot().GetSummary(), step.GetSnapshot().GetSummary()),
	} {
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

// end returns the part of a step's result about its end.
func end(step *harnessv1.Step) *harnessv1.HarnessResult {
	r := step.GetResult()
	if r == nil {
		return nil
	}
	return &harnessv1.HarnessResult{Status: r.GetStatus(), Accepted: r.GetAccepted(), Reason: r.GetReason()}
}

// definitions are compiled once each.
var definitions agent.Cache

// input returns the input of the decision of a step.
func (l *Log) input(e runlog.Entry) (*harnessv1.StepInput, *agent.Definition, error) {
	before, step := proto.CloneOf(l.step.Record.GetStep()), e.Record.GetStep()
	s := before.GetSnapshot()
	if err := l.parts.Unpack(s, l.blob); err != nil {
		return nil, nil, err
	}
	var d *harnessv1.Definition
	var task *harnessv1.TaskContract
	if spec := before.GetRepairTrigger().GetSpec(); spec != nil {
		d, task = agent.StoredForm(spec)
	} else {
		d, task = s.GetDefinition(), s.GetTaskContract()
	}
	var err error
	if d != nil {
		d, err = runstate.UnpackPart(d, l.blob)
	}
	if task != nil && err == nil {
		task, err = runstate.UnpackPart(task, l.blob)
	}
	if err != nil {
		return nil, nil, err
	}
	definition, err := definitions.Load(context.Background(), e.Run, &harnessv1.Snapshot{Definition: d, TaskContract: task})
	if err != nil {
		return nil, nil, errors.Join(errors.New("the definition"), err)
	}
	return &harnessv1.StepInput{
		Namespace: e.Run.Namespace, RunId: e.Run.ID, Version: l.step.Header.Version, Sequence: l.step.Sequence,
		Now: timestamppb.New(now(before, e)), Step: before, Observed: step.GetObserved(),
	}, definition, nil
}

// now returns the time of a decision: that of its verdict or of the segment that it began, else that of the commit.
func now(before *harnessv1.Step, e runlog.Entry) time.Time {
	q, former := e.Record.GetStep().GetSnapshot().GetQuality(), before.GetSnapshot().GetQuality()
	switch {
	case q.GetStartTime() != nil && !proto.Equal(q.GetStartTime(), former.GetStartTime()):
		return q.GetStartTime().AsTime()
	case q.GetVerdict() != nil && !proto.Equal(q.GetVerdict().GetDuration(), former.GetVerdict().GetDuration()):
		return q.GetStartTime().AsTime().Add(q.GetVerdict().GetDuration().AsDuration())
	}
	return e.Record.GetCommitTime().AsTime()
}

// sameEvents compares the events of quality.
func sameEvents(made, stored []*harnessv1.Event) string {
	made, stored = ofQuality(made), ofQuality(stored)
	for i := range max(len(made), len(stored)) {
		switch {
		case i >= len(stored):
			return fmt.Sprintf("lacks an event: %v", made[i])
		case i >= len(made):
			return fmt.Sprintf("has an event that is not decided: %v", stored[i])
		}
		if wrong := differ("an event", made[i], stored[i]); wrong != "" {
			return wrong
		}
	}
	return ""
}

// ofQuality returns the events of quality, without the fields that the commit sets.
func ofQuality(events []*harnessv1.Event) []*harnessv1.Event {
	var of []*harnessv1.Event
	for _, e := range events {
		switch e.GetEvent().(type) {
		case *harnessv1.Event_QualityComplexity, *harnessv1.Event_QualityPlanSelected, *harnessv1.Event_QualityContract, *harnessv1.Event_QualityVerified,
			*harnessv1.Event_QualityScored, *harnessv1.Event_QualityRetry, *harnessv1.Event_QualityDegraded, *harnessv1.Event_QualityIterated,
			*harnessv1.Event_QualityProfile, *harnessv1.Event_QualityMilestone, *harnessv1.Event_ContextMetrics:
			of = append(of, &harnessv1.Event{Event: e.GetEvent()})
		}
	}
	return of
}

// sameContent compares contents that are stored in the same way: the commit moves large ones to blobs.
func sameContent(what string, made, stored *harnessv1.Content) string {
	if (made.GetBlob() == nil) != (stored.GetBlob() == nil) {
		return ""
	}
	return differ(what, made, stored)
}

// differ returns how a stored message is not the one that is made again; empty if they are the same.
func differ(what string, made, stored proto.Message) string {
	if proto.Equal(made, stored) {
		return ""
	}
	return fmt.Sprintf("%s: stored {%s}; decided again {%s}", what, prototext.MarshalOptions{}.Format(stored), prototext.MarshalOptions{}.Format(made))
}

func refusal(a *harnessv1.QualityAlert) bool { return a.GetSeverity() == quality.Critical }
