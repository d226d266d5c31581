package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestBodyIsWhatWasWritten compares a body with a buffer.
func TestBodyIsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Body
		var want bytes.Buffer
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			p := bytes.Repeat([]byte(rapid.String().Draw(t, "text")), rapid.IntRange(0, 2000).Draw(t, "times"))
			_, _ = b.Write(p)
			want.Write(p)
		}
		r, err := b.reader()
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(read, want.Bytes()) || !bytes.Equal(b.Bytes(), want.Bytes()) || b.Len() != want.Len() {
			t.Fatalf("%d of %d bytes were read: %v", len(read), want.Len(), err)
		}
	})
}

// TestTextIsEncodedAsAWhole compares long texts, also invalid ones, with encoding/json.
func TestTextIsEncodedAsAWhole(t *testing.T) {
	const long = 3*jsonPiece + 5
	for name, s := range map[string]string{
		"letters":             strings.Repeat("a", long),
		"characters":          strings.Repeat("a€", long/4),
		"cut characters":      strings.Repeat("\xe2\x82", long/2),
		"continuation bytes":  strings.Repeat("\x82", long),
		"a character, broken": strings.Repeat("\xf0\x9f\x98é\u2028<&>\"\\\n\x00", long/16),
	} {
		for shift := range utf8.UTFMax {
			text := strings.Repeat("x", shift) + s
			var b Body
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetEscapeHTML(false)
			if err := errors.Join(encoder.Encode(text), b.Encode(text)); err != nil {
				t.Fatal(err)
			}
			if got := string(b.Bytes()); got+"\n" != want.String() {
				t.Errorf("%s: %d bytes differ from the %d of encoding/json", name, len(got), want.Len())
			}
		}
	}
}

// TestBodyNeedsItsSize: a body of many writes needs little more than its bytes.
func TestBodyNeedsItsSize(t *testing.T) {
	const size = 64 << 20
	text := strings.Repeat("text ", size/5/16)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := &Body{}
	for range 16 {
		if err := b.Encode(text); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(b.Len())*11/10 { // all that was ever allocated
		t.Errorf("%d bytes were allocated for %d", grown, b.Len())
	}
}

// TestBodyIsReleased: the bytes are gone once the service answers, also while the answer
// is read, and a redirect before that gets all of them.
func TestBodyIsReleased(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || len(data) != 10*maxBlock || r.ContentLength != int64(len(data)) {
			t.Errorf("%s got %d bytes of %d: %v", r.URL.Path, len(data), r.ContentLength, err)
		}
		if !strings.HasSuffix(r.URL.Path, "/there") {
			http.Redirect(w, r, "there", http.StatusTemporaryRedirect)
			return
		}
		_, _ = fmt.Fprint(w, `{}`)
	})
	b := &Body{}
	_, _ = b.Write(bytes.Repeat([]byte("x"), 10*maxBlock))
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res, err := NewClient(base, nil, s.Client()).Post(t.Context(), "here", b)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if _, err := b.reader(); !errors.Is(err, errReleased) || b.blocks != nil {
		t.Errorf("the body can be read again: %v", err)
	}
}
