package media_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

func TestTokens(t *testing.T) {
	claude := media.Formula{Square: 28, MaxLong: 2576, MaxSquares: 4784}
	olderClaude := media.Formula{Square: 28, MaxLong: 1568, MaxSquares: 1568}
	patches := media.Formula{Square: 32, MaxSquares: 1536}
	tiles := media.Formula{Square: 512, MaxLong: 2048, MaxShort: 768, Base: 85, PerThousand: 170_000}
	for _, c := range []struct {
		name  string
		f     media.Formula
		w, h  uint32
		pages uint32
		want  uint64
	}{
		{"the estimate", media.Formula{}, 1000, 750, 0, 1000},
		{"the estimate rounds up", media.Formula{}, 1, 1, 0, 1},
		{"no pixels", claude, 0, 100, 0, 0},
		{"squares of 28", claude, 1280, 720, 0, 46 * 26},
		{"a stored image is not scaled", claude, 2000, 1500, 0, 72 * 54},
		{"a large square image", claude, 2000, 2000, 0, 69 * 69},
		{"older, the longer side", olderClaude, 2000, 500, 0, 56 * 14},
		{"older, the area", olderClaude, 1568, 1568, 0, 39 * 39},
		{"a line", olderClaude, 2000, 1, 0, 56},
		{"patches below the limit", patches, 1024, 1024, 0, 1024},
		{"patches above the limit", patches, 1800, 2400, 0, 1452},
		{"patches with a factor", media.Formula{Square: 32, MaxSquares: 1536, PerThousand: 1200}, 1280, 720, 0, 1104},
		{"a very long image", patches, 50_000, 40, 0, 1250},
		{"tiles", tiles, 1024, 1024, 0, 765},
		{"tall tiles", tiles, 2048, 4096, 0, 1105},
		{"a small tile", tiles, 10, 10, 0, 255},
		{"pages", claude, 0, 0, 40, 96_000},
		{"pages of a model", media.Formula{Page: 560}, 0, 0, 10, 5_600},
	} {
		m := &harnessv1.Media{Type: media.PNG, Width: c.w, Height: c.h}
		if c.pages > 0 {
			m = &harnessv1.Media{Type: media.PDF, Pages: c.pages}
		}
		if got := media.Tokens(m, c.f); got != c.want {
			t.Errorf("%s: %d×%d are %d tokens, want %d", c.name, c.w, c.h, got, c.want)
		}
	}
	if got := media.MessageTokens(message(user, "text", picture("a", 4), paper("b", 2, 4)), media.Formula{}); got != 1229+4800 {
		t.Errorf("a message weighs %d, want %d", got, 1229+4800)
	}
}
