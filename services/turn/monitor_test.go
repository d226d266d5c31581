package turn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

func qualitySnapshot(kind string) *harnessv1.Snapshot {
	s := snapshot()
	s.Quality = &harnessv1.QualityState{Kind: kind, Attempt: 1, AttemptFirstMessage: 2}
	return s
}

// TestMonitor: alerts are stored with the response and emitted; each checkpoint is read once a segment, in one text or several.
func TestMonitor(t *testing.T) {
	text := "Unfortunately I am lost. " + strings.Repeat("x ", 300)
	for name, c := range map[string]struct {
		before, text string
		passed       []uint32
		alerts       int
		chars        uint64
		checkpoints  []uint32
	}{
		"at once":     {"", text, nil, 1, 625, []uint32{500}},
		"in two":      {text[:300], text[300:], nil, 1, 625, []uint32{500}},
		"read before": {"", text, []uint32{500}, 0, 625, []uint32{500}},
		"short":       {"", text[:499], nil, 0, 499, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := qualitySnapshot(quality.Chat)
			s.Quality.AttemptChars, s.Quality.Checkpoints = uint64(len(c.before)), c.passed
			w := newWorker(t, s, call("a", "read_file", `{"path":"1"}`))
			w.response.Text = c.text
			w.last = []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(strings.Repeat("y", 600))},
				{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(c.before)}}
			o := w.mustEnd()
			rec := w.journal[1]
			r := rec.GetJournal().GetModelResponded()
			if len(r.GetAlerts()) != c.alerts || strings.Count(names(rec.GetEvents()), "quality_alert") != c.alerts || r.GetTextChars() != uint64(len(c.text)) {
				t.Errorf("stored %v, events %s", r.GetAlerts(), names(rec.GetEvents()))
			}
			q := o.GetStep().GetSnapshot().GetQuality()
			if q.GetAttemptChars() != c.chars || !slices.Equal(q.GetCheckpoints(), c.checkpoints) || q.GetRefused() != (c.alerts > 0) {
				t.Errorf("the state is %v", q)
			}
			if f := q.GetResults(); f.GetCalls() != 1 || f.GetChars() != uint64(len("result of a")) || f.GetLargestTool() != "read_file" || f.GetByTool()["read_file"] != 1 {
				t.Errorf("figures %v", f)
			}
		})
	}
}

// TestMonitorReadsCutText: a text whose calls are dropped counts as one that is whole.
func TestMonitorReadsCutText(t *testing.T) {
	w := newWorker(t, qualitySnapshot(quality.Chat), call("a", "read_file", `{"path":"1"}`))
	w.response.Text, w.response.FinishReason = "Unfortunately I am lost. "+strings.Repeat("x ", 300), "length"
	o := w.mustEnd()
	if q := o.GetStep().GetSnapshot().GetQuality(); q.GetAttemptChars() != 625 || !slices.Equal(q.GetCheckpoints(), []uint32{500}) || !q.GetRefused() {
		t.Errorf("the state is %v", q)
	}
	if got := strings.Count(names(w.journal[1].GetEvents()), "quality_alert"); got != 1 {
		t.Errorf("%d alerts", got)
	}
}

func TestNoMonitorWithoutQuality(t *testing.T) {
	w := newWorker(t, snapshot(), call("a", "read_file", `{"path":"1"}`))
	w.response.Text = "Unfortunately. " + strings.Repeat("x ", 300)
	o := w.mustEnd()
	if r := w.journal[1].GetJournal().GetModelResponded(); len(r.GetAlerts()) > 0 || r.GetTextChars() != 0 || o.GetStep().GetSnapshot().GetQuality() != nil {
		t.Errorf("stored %v", r)
	}
}

// TestSavedArtifactsOfJournal are in the ledger after the turn, whether the calls were judged with the response or after it.
func TestSavedArtifactsOfJournal(t *testing.T) {
	saved := []*harnessv1.Artifact{{Id: "a1", Kind: "document", Title: "T", Content: content.Inline("C")}}
	for name, entry := range map[string]func(*harnessv1.Record){
		"with the response": func(r *harnessv1.Record) { r.GetJournal().GetModelResponded().Artifacts = saved },
		"after it":          func(r *harnessv1.Record) { r.GetJournal().GetModelResponded().Unjudged = true },
	} {
		w := responded(t, qualitySnapshot(quality.Drafting), response())
		entry(w.journal[1])
		if name == "after it" {
			entry := &harnessv1.Journal{Entry: &harnessv1.Journal_CallsJudged{CallsJudged: &harnessv1.CallsJudged{Artifacts: saved}}}
			w.journal = append(w.journal, &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: entry}})
		}
		w.dies = -1
		o := w.mustEnd()
		if l := o.GetStep().GetSnapshot().GetWorkItemLedger(); len(l.GetArtifacts()) != 1 || l.GetArtifacts()[0].GetId() != "a1" || l.GetLastArtifact() != 1 {
			t.Errorf("%s: the ledger is %v", name, l)
		}
	}
}
