package content_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// TestCutIsACopy: a preview that is kept does not keep the text that it was cut from.
func TestCutIsACopy(t *testing.T) {
	text := strings.Repeat("text ", 1000)
	cut := content.Cut(text, 7)
	if cut != "text te" || unsafe.StringData(cut) == unsafe.StringData(text) {
		t.Errorf("%q is a part of the text", cut)
	}
	if all := content.Cut(text, len(text)); unsafe.StringData(all) != unsafe.StringData(text) {
		t.Error("a text that is short enough was copied")
	}
}
