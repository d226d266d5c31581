package runlogtest

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var valueCases = map[string]func(*bed){
	"values/compare and set": valueRevisions,
	"values/separate":        valueSeparate,
	"values/concurrently":    valueConcurrently,
	"values/invalid":         valueInvalid,
}

func valueOf(name string) runlog.ValueKey {
	return runlog.ValueKey{Namespace: "suite", Kind: "profile", Name: name}
}

// read returns a value and its revision.
func (b *bed) read(key runlog.ValueKey) (string, uint64) {
	b.Helper()
	data, revision, err := b.log.Value(b.ctx, key)
	b.must(err)
	return string(data), revision
}

func valueRevisions(b *bed) {
	key := valueOf("v")
	if data, revision := b.read(key); data != "" || revision != 0 {
		b.Fatalf("%q with revision %d before the first write", data, revision)
	}
	first, err := b.log.PutValue(b.ctx, key, []byte("one"), 0)
	b.must(err)
	if data, revision := b.read(key); data != "one" || revision != first || first == 0 {
		b.Fatalf("%q with revision %d, stored as %d", data, revision, first)
	}
	_, err = b.log.PutValue(b.ctx, key, []byte("other"), 0)
	b.wantErr(err, runlog.ErrFenced)
	second, err := b.log.PutValue(b.ctx, key, []byte("two"), first)
	b.must(err)
	_, err = b.log.PutValue(b.ctx, key, []byte("late"), first)
	b.wantErr(err, runlog.ErrFenced)
	if data, revision := b.read(key); data != "two" || revision != second || second <= first {
		b.Fatalf("%q with revision %d, stored as %d after %d", data, revision, second, first)
	}
}

func valueSeparate(b *bed) {
	keys := []runlog.ValueKey{
		valueOf("v"), valueOf("w"), {Namespace: "other", Kind: "profile", Name: "v"}, {Namespace: "suite", Kind: "prompts", Name: "v"},
	}
	for _, key := range keys {
		_, err := b.log.PutValue(b.ctx, key, []byte(key.String()), 0)
		b.must(err)
	}
	for _, key := range keys {
		if data, _ := b.read(key); data != key.String() {
			b.Errorf("%s has %q", key, data)
		}
	}
}

// valueConcurrently counts with several writers: none of their writes is lost.
func valueConcurrently(b *bed) {
	const writers, each = 8, 5
	key := valueOf("count")
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for done := 0; done < each; {
				data, revision, err := b.log.Value(b.ctx, key)
				if err != nil {
					b.Error(err)
					return
				}
				var n uint64
				if data != nil {
					n = binary.BigEndian.Uint64(data)
				}
				switch _, err := b.log.PutValue(b.ctx, key, binary.BigEndian.AppendUint64(nil, n+1), revision); {
				case err == nil:
					done++
				case !errors.Is(err, runlog.ErrFenced):
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if data, _ := b.read(key); len(data) != 8 || binary.BigEndian.Uint64([]byte(data)) != writers*each {
		b.Errorf("%d writes counted as %x", writers*each, data)
	}
}

func valueInvalid(b *bed) {
	for _, key := range []runlog.ValueKey{{}, {Namespace: "suite", Kind: "profile", Name: "a.b"}, {Namespace: "*", Kind: "profile", Name: "a"}} {
		if _, _, err := b.log.Value(b.ctx, key); err == nil {
			b.Errorf("%q is read", key)
		}
		if _, err := b.log.PutValue(b.ctx, key, nil, 0); err == nil {
			b.Errorf("%q is stored", key)
		}
	}
	_, err := b.log.PutValue(b.ctx, valueOf("large"), noise(runlog.MaxRecord+1), 0)
	b.wantErr(err, runlog.ErrTooLarge)
}
