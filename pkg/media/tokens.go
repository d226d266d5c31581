package media

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Formula is how a model weighs images.
type Formula interface {
	// Tokens returns the weight of an image of a size in pixels.
	Tokens(width, height uint32) uint64
}

const (
	// pixelsPerToken is the usual ratio, for models without a formula.
	pixelsPerToken = 750
	// PageTokens is the weight of a page of a document. Services send a page as text and as
	// an image, for 1,500 to 3,000 tokens; pages of text and tables measure 2,300 to 2,500.
	PageTokens = 2400
)

// Tokens returns the weight of an image or document for a model, in tokens. A nil formula
// is the usual estimate of one token for 750 pixels.
func Tokens(m *harnessv1.Media, f Formula) uint64 {
	switch {
	case IsDocument(m):
		return PageTokens * uint64(max(m.GetPages(), 1))
	case f == nil:
		return (uint64(m.GetWidth())*uint64(m.GetHeight()) + pixelsPerToken - 1) / pixelsPerToken
	}
	return f.Tokens(m.GetWidth(), m.GetHeight())
}

// MessageTokens returns the weight of the images and documents of a message.
func MessageTokens(m *harnessv1.Message, f Formula) uint64 {
	var n uint64
	for _, p := range m.GetParts() {
		if media := p.GetMedia(); media != nil {
			n += Tokens(media, f)
		}
	}
	return n
}
