package media

import (
	"math"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Formula is how a model weighs images and documents, in tokens. An image is scaled down,
// covered with squares, and costs Base and a number of tokens for each square. The zero
// value is the usual estimate of one token for 750 pixels.
//
// Sources, autumn 2026: platform.claude.com/docs/en/build-with-claude/vision (squares of
// 28 pixels, 2576 pixels and 4784 squares; older models 1568 and 1568),
// developers.openai.com/api/docs/guides/images-vision (squares of 32 pixels and 1536
// squares, each 1.2 tokens, or squares of 512 pixels after scaling to 2048 and 768).
type Formula struct {
	// Square is the side of the squares, in pixels; 0: one token for 750 pixels.
	Square uint32
	// MaxLong and MaxShort bound the longer and the shorter side, in pixels; 0: not at all.
	MaxLong, MaxShort uint32
	// MaxSquares bounds the squares: a larger image is scaled down until it has no more.
	// 0: not at all.
	MaxSquares uint32
	// Base is the number of tokens of every image.
	Base uint32
	// PerThousand is the number of tokens of 1,000 squares; 0 means 1,000.
	PerThousand uint32
	// Page is the number of tokens of a page of a document; 0 means DefaultPage.
	Page uint32
}

const (
	// pixelsPerToken is the ratio of the usual estimate.
	pixelsPerToken = 750
	// DefaultPage is the weight of a page, which services send as text and as an image:
	// 1,500 to 3,000 tokens; pages of text and tables measure 2,300 to 2,500.
	DefaultPage = 2400
)

// Tokens returns the weight of an image or document for a model.
func Tokens(m *harnessv1.Media, f Formula) uint64 {
	if IsDocument(m) {
		page := uint64(f.Page)
		if page == 0 {
			page = DefaultPage
		}
		return page * uint64(max(m.GetPages(), 1))
	}
	w, h := float64(m.GetWidth()), float64(m.GetHeight())
	if w == 0 || h == 0 {
		return 0
	}
	if f.Square == 0 {
		return uint64(math.Ceil(w * h / pixelsPerToken))
	}
	perThousand := uint64(f.PerThousand)
	if perThousand == 0 {
		perThousand = 1000
	}
	return uint64(f.Base) + (f.squares(w, h)*perThousand+999)/1000
}

// squares returns how many squares cover an image of w×h pixels after it is scaled.
func (f Formula) squares(w, h float64) uint64 {
	shrink := func(by float64) { w, h = math.Max(w*by, 1), math.Max(h*by, 1) }
	if limit := float64(f.MaxLong); limit > 0 && math.Max(w, h) > limit {
		shrink(limit / math.Max(w, h))
	}
	if limit := float64(f.MaxShort); limit > 0 && math.Min(w, h) > limit {
		shrink(limit / math.Min(w, h))
	}
	side := float64(f.Square)
	covered := func() float64 { return math.Ceil(w/side) * math.Ceil(h/side) }
	if limit := float64(f.MaxSquares); limit > 0 && covered() > limit {
		// First to the area of the squares, then until one side consists of whole squares.
		shrink(math.Sqrt(limit * side * side / (w * h)))
		across, down := w/side, h/side
		shrink(math.Min(math.Max(math.Floor(across), 1)/across, math.Max(math.Floor(down), 1)/down))
		return uint64(math.Min(math.Ceil(w/side-epsilon)*math.Ceil(h/side-epsilon), limit))
	}
	return uint64(covered())
}

// epsilon is the error of the side that was scaled to whole squares.
const epsilon = 1e-9

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
