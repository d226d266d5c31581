package shown_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
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
		if got := shown.Weight(model, c.formula, c.m); got != c.want {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}
