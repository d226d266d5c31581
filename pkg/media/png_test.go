package media_test

import (
	"bytes"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// TestDamagedMetadataIsRemoved: a wrong checksum in a chunk that the pixels do not need, and only
// there, leaves an image as it is without the chunk.
func TestDamagedMetadataIsRemoved(t *testing.T) {
	whole := mediatest.PNG(mediatest.Plain(30, 20, color.NRGBA{B: 200, A: 255}))
	insert := func(at int, chunk []byte, wrong bool) []byte {
		if wrong {
			chunk[len(chunk)-1] ^= 1
		}
		return slices.Concat(whole[:at], chunk, whole[at:])
	}
	_, want, err := media.Check("x", whole)
	if err != nil {
		t.Fatal(err)
	}
	const afterHeader = 33
	twice := insert(afterHeader, mediatest.Chunk("tEXt", []byte("Comment\x00a")), true)
	twice = append(twice[:len(twice)-12:len(twice)-12], append(slices.Replace(mediatest.Chunk("tIME", make([]byte, 7)), 15, 16, 'x'), twice[len(twice)-12:]...)...)
	for name, data := range map[string][]byte{
		"text":         insert(afterHeader, mediatest.Chunk("tEXt", []byte("Comment\x00a")), true),
		"transparency": insert(afterHeader, mediatest.Chunk("tRNS", []byte{0, 1, 0, 1, 0, 1}), true),
		"two":          twice,
		"sound text":   insert(afterHeader, mediatest.Chunk("tEXt", []byte("Comment\x00a")), false),
	} {
		m, got, err := media.Check("x", data)
		if err != nil || m.GetWidth() != 30 || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %v; %d bytes, want %d", name, m, err, len(got), len(want))
		}
	}
	critical := bytes.Clone(whole)
	critical[len(critical)-13] ^= 1 // of IDAT
	if _, _, err := media.Check("x", critical); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("damaged pixels: %v", err)
	}
	cut := insert(afterHeader, mediatest.Chunk("tEXt", []byte("Comment\x00a")), true)[:afterHeader+15]
	if _, _, err := media.Check("x", cut); err == nil {
		t.Error("a truncated image is accepted")
	}
}
