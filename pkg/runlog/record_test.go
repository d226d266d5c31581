package runlog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func FuzzDecode(f *testing.F) {
	data, err := Encode(everything())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, uint64(7), uint32(1))
	f.Add(data[:len(data)/2], uint64(7), uint32(1))
	f.Add([]byte{}, uint64(0), uint32(0))
	f.Add([]byte{0xff}, uint64(1), uint32(2))
	f.Fuzz(func(t *testing.T, data []byte, version uint64, schema uint32) {
		rec, err := Decode(data, Header{Version: version, Schema: schema})
		if err != nil {
			if rec != nil {
				t.Fatalf("a record and the error %v", err)
			}
			if errors.Is(err, ErrSchemaTooNew) != (schema > Schema) {
				t.Fatalf("schema %d: %v", schema, err)
			}
			return
		}
		again, err := Encode(rec)
		if err != nil {
			if errors.Is(err, ErrTooLarge) {
				return
			}
			t.Fatal(err)
		}
		other, err := Decode(again, HeaderOf(rec))
		if err != nil || !proto.Equal(rec, other) {
			t.Fatalf("%v (%v), was %v", other, err, rec)
		}
		if once, err := Encode(other); err != nil || !bytes.Equal(once, again) {
			t.Fatalf("equal records are different bytes (%v)", err)
		}
	})
}

func TestDecodeRefused(t *testing.T) {
	rec := everything()
	data, err := Encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	header := HeaderOf(rec)
	for what, change := range map[string]func(*Header){
		"another version": func(h *Header) { h.Version++ },
		"a newer schema":  func(h *Header) { h.Schema = Schema + 1 },
		"another schema":  func(h *Header) { h.Schema = 0 },
	} {
		h := header
		change(&h)
		if got, err := Decode(data, h); err == nil || got != nil {
			t.Errorf("a header with %s: %v", what, err)
		}
	}
}

func TestEncodeTooLarge(t *testing.T) {
	rec := &harnessv1.Record{Namespace: strings.Repeat("x", MaxRecord)}
	if _, err := Encode(rec); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	rec.Namespace = rec.Namespace[:MaxRecord-5] // with its tag and length
	if data, err := Encode(rec); err != nil || len(data) > MaxRecord {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
}

func FuzzCut(f *testing.F) {
	for _, s := range []string{"", "text", "ÄÖÜ", "日本語", "\xff\xff\xff\xff\xff\xff\xff\xffaaaa\u00e9", "a\xc3", "\xf0\x9f\x98", "😀😀😀"} {
		for _, limit := range []int{0, 1, 3, 10, content.MaxPreview} {
			f.Add(s, limit)
		}
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(min(limit, 4096), 0)
		got, whole := content.Cut(s, limit), strings.ToValidUTF8(s, "\uFFFD")
		if !utf8.ValidString(got) || len(got) > limit || !strings.HasPrefix(whole, got) {
			t.Fatalf("content.Cut(%q, %d) is %q", s, limit, got)
		}
		if rest := whole[len(got):]; rest != "" {
			if _, width := utf8.DecodeRuneInString(rest); len(got)+width <= limit {
				t.Fatalf("content.Cut(%q, %d) is %q, and the next rune fits", s, limit, got)
			}
		}
	})
}

// store keeps blobs in memory.
type store map[string][]byte

func (s store) put(_ context.Context, data []byte) (*harnessv1.BlobRef, error) {
	ref := content.Ref(data)
	s[ref.GetDigest()] = bytes.Clone(data)
	return ref, nil
}

// restore replaces the references in rec by the stored contents.
func (s store) restore(rec *harnessv1.Record) {
	for _, m := range rec.GetAppended() {
		contents := []*harnessv1.Content{m.GetContent()}
		for _, call := range m.GetToolCalls() {
			contents = append(contents, call.GetArguments())
		}
		for _, c := range contents {
			if ref := c.GetBlob(); ref != nil {
				c.Value = &harnessv1.Content_Inline{Inline: string(s[ref.GetDigest()])}
			}
		}
		for _, p := range m.GetParts() {
			if ref := p.GetOpaque().GetBlob(); ref != nil {
				p.Opaque.Value = &harnessv1.Opaque_Inline{Inline: s[ref.GetDigest()]}
			}
		}
	}
}

func TestSpill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := &harnessv1.Record{Namespace: "n", RunId: "r", Version: 1, Schema: Schema, Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}}
		drawContent := func() *harnessv1.Content {
			size := rapid.OneOf(rapid.IntRange(0, 2*content.MaxPreview), rapid.IntRange(content.MaxPreview, 2*MaxInline), rapid.IntRange(0, 2*MaxRecord)).Draw(t, "size")
			letter := rapid.SampledFrom([]string{"a", "b", "ä", "\n"}).Draw(t, "letter")
			return content.Inline(content.Cut(strings.Repeat(letter, size), size))
		}
		shared := drawContent()
		for range rapid.IntRange(0, 60).Draw(t, "messages") {
			m := &harnessv1.Message{Content: shared}
			if rapid.IntRange(0, 3).Draw(t, "own") > 0 {
				m.Content = drawContent()
			}
			if rapid.Bool().Draw(t, "calls") {
				m.ToolCalls = []*harnessv1.ToolCall{{Id: "c", Arguments: drawContent()}}
			}
			if rapid.Bool().Draw(t, "opaque") {
				bytes := []byte("\xff" + drawContent().GetInline())
				m.Parts = []*harnessv1.Part{{Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: bytes}}}}
			}
			rec.Appended = append(rec.Appended, m)
		}
		before := proto.CloneOf(rec)
		blobs := store{}
		var sizes []int
		err := Spill(context.Background(), rec, func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error) {
			sizes = append(sizes, len(data))
			return blobs.put(ctx, data)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Encode(rec); err != nil {
			t.Fatal(err)
		}
		smallest := MaxRecord * 8
		for _, size := range sizes {
			if size > smallest {
				t.Fatalf("spilled in the order %v, want the largest first", sizes)
			}
			smallest = size
		}
		if before := proto.Size(before); before <= MaxInline && len(sizes) > 0 {
			t.Fatalf("a record of %d bytes was spilled", before)
		}
		for _, m := range rec.GetAppended() {
			for _, c := range append([]*harnessv1.Content{m.GetContent()}, arguments(m)...) {
				if text := c.GetInline(); len(text) > MaxInline && len(sizes) > 0 {
					t.Fatalf("%d bytes stayed inline", len(text))
				}
				if ref := c.GetBlob(); ref != nil && (ref.GetSize() <= content.MaxPreview || len(ref.GetPreview()) > content.MaxPreview) {
					t.Fatalf("%d bytes went to a blob with a preview of %d", ref.GetSize(), len(ref.GetPreview()))
				}
			}
		}
		for _, m := range rec.GetAppended() {
			for _, p := range m.GetParts() {
				if len(p.GetOpaque().GetInline()) > MaxInline && len(sizes) > 0 || p.GetOpaque().GetBlob().GetPreview() != "" {
					t.Fatalf("%d opaque bytes are inline, the preview is %q", len(p.GetOpaque().GetInline()), p.GetOpaque().GetBlob().GetPreview())
				}
			}
		}
		blobs.restore(rec)
		if !proto.Equal(rec, before) {
			t.Fatal("the contents are others now")
		}
	})
}

func arguments(m *harnessv1.Message) (contents []*harnessv1.Content) {
	for _, call := range m.GetToolCalls() {
		contents = append(contents, call.GetArguments())
	}
	return contents
}

// TestSpillShared checks that a content in two fields counts twice when it is moved, so
// that no more than necessary leaves the record.
func TestSpillShared(t *testing.T) {
	shared := content.Inline(strings.Repeat("s", MaxInline))
	rec := &harnessv1.Record{}
	for range 20 {
		rec.Appended = append(rec.Appended, &harnessv1.Message{Content: shared})
	}
	small := content.Inline(strings.Repeat("x", 4000))
	rec.Appended = append(rec.Appended, &harnessv1.Message{Content: small})
	puts := 0
	err := Spill(context.Background(), rec, func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error) {
		puts++
		return store{}.put(ctx, data)
	})
	if err != nil || puts != 1 || shared.GetBlob() == nil || small.GetBlob() != nil {
		t.Fatalf("%d blobs, %v; the small content: %v", puts, err, small.GetBlob())
	}
}

func TestSpillFails(t *testing.T) {
	broken := errors.New("no room")
	rec := &harnessv1.Record{Appended: []*harnessv1.Message{{Content: content.Inline(strings.Repeat("x", MaxRecord))}}}
	err := Spill(context.Background(), rec, func(context.Context, []byte) (*harnessv1.BlobRef, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

func TestText(t *testing.T) {
	if got := content.Text(content.Inline("x")); got != "x" {
		t.Error(got)
	}
	if got := content.Text(nil); got != "" {
		t.Error(got)
	}
	c := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(strings.Repeat("ä", 1000)))}}
	if got := content.Text(c); got != strings.Repeat("ä", content.MaxPreview/2) {
		t.Error(got)
	}
}
