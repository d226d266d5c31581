package tokens

import "github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"

// Pieces returns the pieces of a text in the encoding of a model.
func Pieces(model, text string) []string {
	var pieces []string
	for scan := encodingFor(model).scan; len(text) > 0; {
		size := scan(text)
		pieces, text = append(pieces, text[:size]), text[size:]
	}
	return pieces
}

// Sizes returns the lengths of the tokens of the piece text[from:to] in a vocabulary. That
// it may be a token as a whole is not considered.
func Sizes(v *vocabulary.Vocabulary, text string, from, to int) []int {
	m := merger{ranks: v}
	var sizes []int
	if to-from > longPiece {
		m.long(text, from, to)
		for _, size := range m.sizes {
			sizes = append(sizes, int(size))
		}
		return sizes
	}
	m.merge(text, from, to)
	for at := uint32(0); at < uint32(to-from); at = m.next[at] {
		sizes = append(sizes, int(m.next[at]-at))
	}
	return sizes
}

// CountPiece returns the number of tokens of a piece in a vocabulary.
func CountPiece(v *vocabulary.Vocabulary, piece string) int {
	m := merger{ranks: v}
	return m.count(piece, 0, len(piece))
}

// FirstCount counts a text with a vocabulary that is not open yet.
func FirstCount(encoding, text string) int {
	if encoding == "cl100k_base" {
		return newEncoding(encoding, cl100kIndex, scanCL100k).count(text)
	}
	return newEncoding(encoding, o200kIndex, scanO200k).count(text)
}
