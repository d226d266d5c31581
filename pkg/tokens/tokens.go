// Package tokens counts tokens exactly as the providers' byte-pair encodings
// do, offline: the vocabularies (o200k, cl100k) are embedded in the binary.
//
// A text is first cut into pieces by the encoding's pattern, then each piece is
// merged by the ranks of the vocabulary. The pattern is matched by hand-written
// scanners and long pieces are merged with a heap, so that time grows as
// n·log n and not as the square of the longest piece. tiktoken-go, which is
// slower and quadratic, is the oracle that the tests compare with.
//
// Invariants:
//   - Count is exact for texts whose pieces (runs of letters, of punctuation or
//     of white space) are at most MaxPiece bytes. A longer piece is cut at each
//     MaxPiece bytes; each cut changes the count by a few tokens at most,
//     because the merges near it agree again after a few tokens (TestCutError bounds
//     it at 4 a cut): less than 1 in 1,000 of the piece.
//   - Names of special tokens in a text are ordinary text.
//   - Invalid UTF-8 counts as U+FFFD, which is what JSON makes of it.
//   - All functions are safe for concurrent use. The first count with an
//     encoding loads its vocabulary once: a fraction of a second and some tens of MB.
//
// No function returns an error: a vocabulary that cannot be read is a broken build,
// and panics.
package tokens

import (
	"sync"
	"unicode/utf8"

	loader "github.com/pkoukk/tiktoken-go-loader"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// MessageOverhead is the cost of a message in addition to its contents, in tokens:
// the marks around it and its role.
const MessageOverhead = 4

// MaxPiece is the longest piece, in bytes, that is merged as a whole.
const MaxPiece = 64 << 10

// encoding is a vocabulary and the scanner that cuts texts into its pieces.
type encoding struct {
	file string
	// scan returns the length in bytes, at least 1, of the first piece of a
	// text that is valid and not empty.
	scan func(text string) int

	once  sync.Once
	ranks map[string]int
}

var (
	o200k  = &encoding{file: "o200k_base.tiktoken", scan: scanO200k}
	cl100k = &encoding{file: "cl100k_base.tiktoken", scan: scanCL100k}
)

func (e *encoding) load() map[string]int {
	e.once.Do(func() {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(e.file)
		if err != nil {
			panic("tokens: the embedded vocabulary " + e.file + " cannot be read: " + err.Error())
		}
		e.ranks = ranks
	})
	return e.ranks
}

// Count returns the number of tokens of text for a model, by its name or reference
// (gpt-4o, openai:gpt-4o). Models without a public vocabulary are counted with
// o200k.
func Count(model, text string) int { return encodingFor(model).count(text) }

func (e *encoding) count(text string) int {
	ranks := e.load()
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	n := 0
	for len(text) > 0 {
		size := e.scan(text)
		piece := text[:size]
		text = text[size:]
		for len(piece) > MaxPiece {
			cut := MaxPiece
			for !utf8.RuneStart(piece[cut]) {
				cut--
			}
			n += countPiece(ranks, piece[:cut])
			piece = piece[cut:]
		}
		n += countPiece(ranks, piece)
	}
	return n
}

// Message is the count of a message as a model is sent it: its contents, the
// names and arguments of its calls, the ids that pair them, and MessageOverhead.
// A content that is a blob counts as its preview.
func Message(model string, m *harnessv1.Message) int {
	e := encodingFor(model)
	n := MessageOverhead + e.count(shown(m.GetContent())) + e.count(m.GetToolCallId())
	for _, c := range m.GetToolCalls() {
		n += e.count(c.GetId()) + e.count(c.GetName()) + e.count(shown(c.GetArguments()))
	}
	return n
}

// Tool is the count of a tool's description and schema as a model is sent them.
func Tool(model string, t *harnessv1.ToolSpec) int {
	e := encodingFor(model)
	return MessageOverhead + e.count(t.GetName()) + e.count(t.GetDescription()) + e.count(t.GetParametersSchema())
}

func shown(c *harnessv1.Content) string {
	if c.GetBlob() != nil {
		return c.GetBlob().GetPreview()
	}
	return c.GetInline()
}
