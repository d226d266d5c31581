package view_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// TestClearedMediaFreesWhatItWeighs: the weight of a message shows how much of it a document
// is for the run's model, whether the weight is known first, later, or observed.
func TestClearedMediaFreesWhatItWeighs(t *testing.T) {
	const text = 2000 // tokens
	for name, c := range map[string]struct{ weight, from, to uint32 }{
		"not known":             {0, text, text + 60},
		"a document":            {text + media.PageTokens, text, text + 60},
		"a line":                {text + 30, text, text + 60},
		"less than its text":    {text / 2, text / 2, text/2 + 60},
		"by a formula of twice": {text + 2*media.PageTokens, text, text + 60},
	} {
		m := &harnessv1.Message{
			Id: 1, Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline(strings.Repeat("word ", text*4/5)),
			Parts: []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PDF, Pages: 1, Blob: &harnessv1.BlobRef{Size: 9}}}}},
		}
		plan := &harnessv1.CompactionPlan{Renderer: view.Renderer, Watermarks: []*harnessv1.Watermark{{
			Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_MEDIA, ThroughMessage: 1,
		}}}
		weights := &harnessv1.Weights{FirstMessage: 1, Tokens: []uint32{c.weight}}
		step := &harnessv1.Record{Version: 2, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{Observed: []*harnessv1.Observation{{
			Value: &harnessv1.Observation_Weights{Weights: weights},
		}}}}}
		var known, later, observed view.Index
		var a, b conversation.Conversation
		a.Fold(&harnessv1.Record{Version: 1, Appended: []*harnessv1.Message{m}})
		later.Add(&a)
		a.Fold(step)
		later.Add(&a)
		known.Add(&a)
		b.Fold(&harnessv1.Record{Version: 1, Appended: []*harnessv1.Message{m}})
		observed.Add(&b)
		observed.Weigh(weights)
		for how, x := range map[string]*view.Index{"first": &known, "later": &later, "observed": &observed} {
			if got := view.NewRules(plan, x).Shown(x.Entry(1)); got < c.from || got > c.to {
				t.Errorf("%s, weighed %s: %d tokens are left, want %d to %d", name, how, got, c.from, c.to)
			}
		}
	}
}
