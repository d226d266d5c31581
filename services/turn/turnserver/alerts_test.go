package turnserver_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// withQuality returns the state of a run whose work is judged, in an attempt that began with
// message 2.
func (b *bed) withQuality(kind string) *harnessv1.Snapshot {
	s := b.state()
	s.Quality = &harnessv1.QualityState{Kind: kind, Attempt: 1, AttemptFirstMessage: 2}
	return s
}

// alerts returns the alerts that are published, as they come.
func (b *bed) alerts() <-chan *harnessv1.Delta {
	b.Helper()
	found := make(chan *harnessv1.Delta, 64)
	stop, err := b.Log.SubscribeDeltas(b.Run, func(d *harnessv1.Delta) {
		if d.GetAlert() != nil {
			found <- d
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(stop)
	return found
}

// TestAlertsComeWhileTheModelWrites: the first arrives while the response is open. Another try
// has its alerts again, and the record those of the try that counts.
func TestAlertsComeWhileTheModelWrites(t *testing.T) {
	t.Parallel()
	refusal := "Unfortunately I cannot say. " + strings.Repeat("wörds go on ", 150)
	b := newBed(t, modeltest.Reply{Text: refusal, Fault: modeltest.FaultSilence}, modeltest.Reply{Text: refusal, Calls: []modeltest.Call{done}})
	found := b.alerts()
	b.run(b.withQuality("synthesis"))
	first := <-found // the model writes nothing more until it is released
	if n := len(b.model.Requests()); n != 1 {
		t.Errorf("the alert came after %d requests", n)
	}
	b.model.Release()
	if a := first.GetAlert(); first.GetTry() != 1 || a.GetSeverity() != "critical" || a.GetCheckpoint() != 500 || first.GetText() != "" {
		t.Errorf("got %v", first)
	}
	journal, _ := b.records()
	var stored []*harnessv1.QualityAlert
	for _, r := range journal {
		stored = append(stored, r.GetJournal().GetModelResponded().GetAlerts()...)
	}
	if len(stored) == 0 || !proto.Equal(stored[0], first.GetAlert()) {
		t.Errorf("stored %v", stored)
	}
	for _, want := range stored {
		if got := <-found; got.GetTry() != 2 || !proto.Equal(got.GetAlert(), want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestAlertsReadTheAttempt: the text before the turn counts, also where it is stored as a blob.
func TestAlertsReadTheAttempt(t *testing.T) {
	t.Parallel()
	b := newBed(t, modeltest.Reply{Text: strings.Repeat("plain ", 60), Calls: []modeltest.Call{done}})
	found := b.alerts()
	s := b.withQuality("full_pipeline")
	before := strings.Repeat("言", 4800)
	s.MessageCount, s.Quality.AttemptChars, s.Quality.Checkpoints = 2, 4800, []uint32{500, 2000}
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
		&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)},
		&harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, Content: b.Blob(before)})
	b.start()
	journal, outcome := b.records()
	live := <-found
	i := slices.IndexFunc(journal, func(r *harnessv1.Record) bool { return r.GetJournal().GetModelResponded() != nil })
	stored := journal[i].GetJournal().GetModelResponded().GetAlerts()
	if len(stored) != 1 || stored[0].GetCheckpoint() != 5000 || !proto.Equal(stored[0], live.GetAlert()) {
		t.Errorf("stored %v, live %v", stored, live)
	}
	if q := outcome.GetStep().GetSnapshot().GetQuality(); q.GetAttemptChars() != 5160 || len(q.GetCheckpoints()) != 3 {
		t.Errorf("the state is %v", q)
	}
}

func TestNoAlertsWithoutQuality(t *testing.T) {
	t.Parallel()
	b := newBed(t, modeltest.Reply{Text: "Unfortunately. " + strings.Repeat("plain ", 100), Calls: []modeltest.Call{done}})
	found := b.alerts()
	b.run(b.state())
	b.records()
	if err := b.Log.PublishDelta(b.Run, &harnessv1.Delta{Alert: &harnessv1.QualityAlert{Issue: "last"}}); err != nil {
		t.Fatal(err)
	}
	if got := <-found; got.GetAlert().GetIssue() != "last" {
		t.Errorf("got %v", got)
	}
}
