package shown

import (
	"cmp"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// opaqueRatio is the usual number of bytes a token, by which opaque parts are weighed: only
// their provider can count them.
const opaqueRatio = 4

// Model has the properties of a model that the weights of messages depend on. The zero value takes no images and
// documents.
type Model struct {
	// Ref is its reference, by which texts are counted.
	Ref string
	// Images is how it weighs images; nil: as usual.
	Images media.Formula
	// Takes is what it is sent of images and documents.
	Takes media.Takes
}

// ModelOf returns a model of a catalogue; nil: the embedded one. A model of a provider that
// the catalogue does not have may be known to the process that calls it, so it counts as one
// that takes images and documents.
func ModelOf(c *catalogue.Catalogue, ref string) Model {
	c = cmp.Or(c, catalogue.Default())
	m := Model{Ref: ref, Images: c.Lookup(ref).ImageTokens, Takes: media.Takes{Images: true, Documents: true}}
	if p, _ := c.ProviderOf(ref); p != nil {
		m.Takes.Images, m.Takes.Documents = c.Takes(ref)
	}
	return m
}

// Weight returns the tokens that a message needs of the model's window, as it is sent: its
// texts, exactly; its images and documents by the formula of the model, or the lines that
// replace those that it does not take; its opaque parts, by their size, whether or not they
// go back. Contents are inline.
//
// Runs weigh messages for their first model. A fallback model that takes less is sent less. One
// that takes more may refuse the request as too long, which leads to a compaction.
func (w Model) Weight(m *harnessv1.Message) uint32 {
	sent := media.Show([]*harnessv1.Message{m}, w.Takes, true)[0]
	n := uint64(tokens.Message(w.Ref, sent)) + media.MessageTokens(sent, w.Images) //nolint:gosec // a count
	for _, p := range m.GetParts() {
		o := p.GetOpaque()
		n += (uint64(len(o.GetInline())) + o.GetBlob().GetSize() + opaqueRatio - 1) / opaqueRatio
	}
	return uint32(min(n, 1<<32-1))
}
