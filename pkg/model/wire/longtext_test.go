package wire

import (
	"strings"
	"testing"
)

// TestLongTextIsItsPieces, wherever its chunks end.
func TestLongTextIsItsPieces(t *testing.T) {
	var text LongText
	var want strings.Builder
	for i := range 700 {
		piece := strings.Repeat(string(rune('a'+i%26)), i*13)
		before := text.Len()
		text.WriteString(piece)
		want.WriteString(piece)
		if text.Len() != want.Len() || text.Since(before) != piece {
			t.Fatalf("after %d pieces: %d bytes, want %d", i, text.Len(), want.Len())
		}
		if i%97 == 0 && text.String() != want.String() {
			t.Fatalf("another text after %d pieces", i)
		}
	}
	for range 2 {
		if text.String() != want.String() {
			t.Error("another text")
		}
	}
}
