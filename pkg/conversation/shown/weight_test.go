package shown_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// flat weighs each image alike.
type flat uint64

func (f flat) Tokens(uint32, uint32) uint64 { return uint64(f) }

func TestWeight(t *testing.T) {
	texts := call(content.Inline(`{"path":"a.txt"}`))
	picture := user(content.Inline("And now?"))
	picture.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PNG, Width: 300, Height: 250}}}}
	thought := call(content.Inline(`{"path":"a.txt"}`))
	thought.Parts[0].Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: make([]byte, 401)}}
	thought.Parts[1].Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{Blob: &harnessv1.BlobRef{Size: 4000}}}
	base := uint32(tokens.Message(model, texts))
	for name, c := range map[string]struct {
		m       *harnessv1.Message
		formula media.Formula
		want    uint32
	}{
		"texts":              {texts, nil, base},
		"an image":           {picture, nil, uint32(tokens.Message(model, picture)) + 100},
		"an image, weighed":  {picture, flat(85), uint32(tokens.Message(model, picture)) + 85},
		"opaque parts":       {thought, nil, base + 101 + 1000},
		"more than a number": {picture, flat(1 << 40), 1<<32 - 1},
	} {
		if got := (shown.Model{Ref: model, Images: c.formula, Takes: media.Takes{Images: true}}).Weight(c.m); got != c.want {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}

// TestWeightFollowsWhatTheModelTakes: an image or a document that the model is sent as a line
// of text weighs as much as that line.
func TestWeightFollowsWhatTheModelTakes(t *testing.T) {
	m := user(content.Inline("What is this?"))
	m.Parts = []*harnessv1.Part{
		{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PNG, Width: 1500, Height: 1000}}},
		{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PDF, Pages: 40}}},
	}
	own, err := catalogue.Default().Extend("own.yaml", []byte("models: [{ref: 'openai:gpt-3.5-turbo', window: 16000, images: true, pdf: false}]"))
	if err != nil {
		t.Fatal(err)
	}
	const image, document = 1500 * 1000 / 750, 40 * media.PageTokens
	for _, c := range []struct {
		in       *catalogue.Catalogue
		ref      string
		from, to uint32
	}{
		{nil, "openai:gpt-3.5-turbo", 60, 200},
		{own, "openai:gpt-3.5-turbo", image, image + 120},
		{nil, "deepseek:deepseek-flash", image, image + 120},
		{nil, "script:a.yaml", image + document, image + document + 20},
		{nil, "provider-of-another-process:x", image + document, image + document + 20},
	} {
		if got := shown.ModelOf(c.in, c.ref).Weight(m); got < c.from || got > c.to {
			t.Errorf("%s: %d tokens, want %d to %d", c.ref, got, c.from, c.to)
		}
	}
}
