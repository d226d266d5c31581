package runlogtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var blobCases = map[string]func(*bed){
	"blob/sizes":       blobSizes,
	"blob/same bytes":  blobSame,
	"blob/unknown":     blobUnknown,
	"blob/lost answer": blobLost,
	"blob/spill":       blobSpill,
	"blob/own copy":    blobOwnCopy,
}

// noise returns bytes that are not text and do not repeat.
func noise(size int) []byte {
	source := rand.NewChaCha8([32]byte{byte(size)})
	data := make([]byte, size)
	_, _ = source.Read(data)
	return data
}

func blobSizes(b *bed) {
	run := b.chain("r").run
	for _, size := range []int{0, 1, 511, 512, 513, 512 << 10, 512<<10 + 1, 1 << 20, 3 << 20} {
		data := noise(size)
		ref, err := b.log.PutBlob(b.ctx, run, data)
		b.must(err)
		if want := content.Ref(data); !proto.Equal(ref, want) {
			b.Fatalf("%d bytes: reference %v, want %v", size, ref, want)
		}
		got, err := b.log.Blob(b.ctx, run, ref.GetDigest())
		b.must(err)
		if !bytes.Equal(got, data) {
			b.Fatalf("%d bytes came back as %d others", size, len(got))
		}
	}
}

func blobSame(b *bed) {
	run, other := b.chain("r").run, b.chain("other").run
	for _, size := range []int{100, 1 << 20} {
		data := noise(size)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				ref, err := b.log.PutBlob(b.ctx, run, data)
				if err != nil {
					b.Error(err)
					return
				}
				got, err := b.log.Blob(b.ctx, run, ref.GetDigest()) // usable immediately
				if err != nil || !bytes.Equal(got, data) {
					b.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		_, err := b.log.Blob(b.ctx, other, content.Digest(data))
		b.wantErr(err, runlog.ErrNotFound)
	}
}

func blobUnknown(b *bed) {
	run := b.chain("r").run
	for _, digest := range []string{"", "x", "*", ">", "0.0", content.Digest([]byte("x")) + ".0", strings.ToUpper(content.Digest([]byte("x")))} {
		_, err := b.log.Blob(b.ctx, run, digest)
		b.wantErr(err, runlog.ErrNotFound)
	}
	_, err := b.log.Blob(b.ctx, run, content.Digest([]byte("never stored")))
	b.wantErr(err, runlog.ErrNotFound)
	// A caller whose context has ended gets no answer.
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err = b.log.Blob(ctx, run, content.Digest([]byte("never stored")))
	b.wantErr(err, runlog.ErrUnavailable)
}

func blobLost(b *bed) {
	faults := NewFaults(b.log)
	run := b.chain("r").run
	data := noise(100)
	for _, lose := range []func(int){faults.loseWrites, faults.loseAcks} {
		lose(1)
		_, err := faults.PutBlob(b.ctx, run, data)
		b.wantErr(err, runlog.ErrUnavailable)
	}
	ref, err := faults.PutBlob(b.ctx, run, data)
	b.must(err)
	got, err := faults.Blob(b.ctx, run, ref.GetDigest())
	b.must(err)
	if !bytes.Equal(got, data) {
		b.Fatalf("%d bytes", len(got))
	}
}

// blobOwnCopy checks that neither the bytes that were passed nor those that were
// returned are the stored ones.
func blobOwnCopy(b *bed) {
	run := b.chain("r").run
	data := noise(100)
	ref, err := b.log.PutBlob(b.ctx, run, data)
	b.must(err)
	want := bytes.Clone(data)
	clear(data)
	for range 2 {
		got, err := b.log.Blob(b.ctx, run, ref.GetDigest())
		b.must(err)
		if !bytes.Equal(got, want) {
			b.Fatal("the stored blob changed")
		}
		clear(got)
	}
}

// blobSpill checks that a record that is too large fits after Spill, and that its
// contents can be read.
func blobSpill(b *bed) {
	c := b.chain("r")
	rec := c.next("turn")
	texts := []string{strings.Repeat("a", 700<<10), strings.Repeat("b", 20<<10), "short"}
	for _, text := range texts {
		rec.Appended = append(rec.Appended, &harnessv1.Message{Content: content.Inline(text)})
	}
	_, err := b.log.Append(b.ctx, rec)
	b.wantErr(err, runlog.ErrTooLarge)
	b.must(runlog.Spill(b.ctx, rec, func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error) {
		return b.log.PutBlob(ctx, c.run, data)
	}))
	sequence, err := b.log.Append(b.ctx, rec)
	b.must(err)
	e, err := b.log.Read(b.ctx, c.run, sequence)
	b.must(err)
	for i, m := range e.Record.GetAppended() {
		text := m.GetContent().GetInline()
		if ref := m.GetContent().GetBlob(); ref != nil {
			data, err := b.log.Blob(b.ctx, c.run, ref.GetDigest())
			b.must(err)
			text = string(data)
		}
		if text != texts[i] {
			b.Errorf("content %d came back as %d bytes", i, len(text))
		}
	}
}
