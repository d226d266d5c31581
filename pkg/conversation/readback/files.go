package readback

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// largest is the number of results whose room a single file may need.
const largest = 4

// files are the images and documents that a result attaches.
type files struct {
	// room is the number of tokens that they may need together, by the usual formula. The
	// first one may need more.
	room     uint64
	used     uint64
	attached []*harnessv1.Media
	tooLarge []*harnessv1.Media
}

// add attaches the files of a message whose lines begin in its text from one offset up to
// another. It returns where the text has to end: before the first file without room. Offsets
// are those of the message's text.
func (f *files) add(m *harnessv1.Message, from, to int) (end int) {
	at := 0
	for _, p := range piecesOf(m) {
		if p.file != nil && at >= from && at < to && !f.attach(p.file) {
			return at
		}
		at += p.size()
	}
	return to
}

// attach reports whether a file is attached, or can never be.
func (f *files) attach(file *harnessv1.Media) bool {
	need := media.Tokens(file, nil)
	switch {
	case need > largest*f.room:
		f.tooLarge = append(f.tooLarge, file)
	case len(f.attached) == 0, len(f.attached) < media.MaxParts && f.used+need <= f.room:
		f.attached = append(f.attached, file)
		f.used += need
	default:
		return false
	}
	return true
}

// reportTooLarge names the files that are too large to be attached.
func (f *files) reportTooLarge(b *strings.Builder) {
	for _, file := range f.tooLarge {
		fmt.Fprintf(b, "[Not attached: %s needs about %d tokens, and a result may have %d. Look at it in smaller parts.]\n",
			media.Label(file), media.Tokens(file, nil), largest*f.room)
	}
}
