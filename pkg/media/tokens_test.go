package media_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// tiles is a formula of one token for each 100 pixels of the longer side.
type tiles struct{}

func (tiles) Tokens(width, height uint32) uint64 { return uint64(max(width, height) / 100) }

func TestTokens(t *testing.T) {
	m := message(user, "text", picture("a", 4), paper("b", 2, 4), picture("c", 4))
	if got, want := media.MessageTokens(m, nil), uint64(2*1229+2*2400); got != want {
		t.Errorf("a message weighs %d by the usual estimate, want %d", got, want)
	}
	if got, want := media.MessageTokens(m, tiles{}), uint64(2*12+2*2400); got != want {
		t.Errorf("a message weighs %d by a formula, want %d", got, want)
	}
	if got := media.Tokens(paper("without a number of pages", 0, 4), nil); got != media.PageTokens {
		t.Errorf("a document weighs %d, want that of a page, %d", got, media.PageTokens)
	}
}
