package runlogtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var keyedCases = map[string]func(*bed){
	"keyed/sizes":            keyedSizes,
	"keyed/first write wins": keyedFirst,
	"keyed/concurrently":     keyedConcurrently,
	"keyed/separate":         keyedSeparate,
	"keyed/lost answer":      keyedLost,
	"keyed/own copy":         keyedOwnCopy,
	"keyed/invalid":          keyedInvalid,
	"keyed/gone":             keyedGone,
}

// started returns the chain of a run that has its first record.
func (b *bed) started(id string) *chain {
	b.Helper()
	c := b.chain(id)
	c.append("repair")
	return c
}

// near returns a chain, not started, of another run in the partition of c.
func (c *chain) near() *chain {
	const most = 4 // partitions
	for i := 0; ; i++ {
		near := c.chain(fmt.Sprintf("%s-near-%d", c.run.ID, i))
		same := true
		for n := 2; n <= most; n++ {
			same = same && runlog.Partition(near.run, n) == runlog.Partition(c.run, n)
		}
		if same {
			return near
		}
	}
}

func (c *chain) first() uint64 { return c.entries[0].Sequence }

// put stores a blob under a key.
func (c *chain) put(key string, data []byte) (stored bool) {
	c.Helper()
	stored, err := c.log.PutBlobAs(c.ctx, c.run, c.first(), key, data)
	c.must(err)
	return stored
}

// under returns the blob under a key.
func (c *chain) under(key string) []byte {
	c.Helper()
	data, err := c.log.BlobAs(c.ctx, c.run, key)
	c.must(err)
	return data
}

func keyedSizes(b *bed) {
	c := b.started("r")
	for _, size := range []int{0, 1, 513, runlog.MaxKeyedBlob} {
		key, data := fmt.Sprint("size-", size), noise(size)
		if got := c.under(key); got != nil {
			b.Fatalf("%d bytes before the first write", len(got))
		}
		if !c.put(key, data) {
			b.Fatalf("%d bytes were not stored", size)
		}
		if got := c.under(key); got == nil || !bytes.Equal(got, data) {
			b.Fatalf("%d bytes came back as %d", size, len(got))
		}
	}
	_, err := b.log.PutBlobAs(b.ctx, c.run, c.first(), "large", noise(runlog.MaxKeyedBlob+1))
	b.wantErr(err, runlog.ErrTooLarge)
	if c.under("large") != nil {
		b.Fatal("a blob above the limit is stored")
	}
}

func keyedFirst(b *bed) {
	c := b.started("r")
	for i, data := range []string{"one", "two", "one"} {
		if stored := c.put("k", []byte(data)); stored != (i == 0) {
			b.Fatalf("write %d: stored is %v", i, stored)
		}
		if got := c.under("k"); string(got) != "one" {
			b.Fatalf("after write %d the blob is %q", i, got)
		}
	}
}

func keyedConcurrently(b *bed) {
	c := b.started("r")
	for round := range 20 {
		c.append("")
		key := fmt.Sprint("k", round)
		var won atomic.Int64
		var winner atomic.Value
		var wg sync.WaitGroup
		for writer := range 8 {
			wg.Go(func() {
				data := fmt.Sprint("of writer ", writer)
				stored, err := b.log.PutBlobAs(b.ctx, c.run, c.first(), key, []byte(data))
				if err != nil {
					b.Error(err)
				}
				if stored {
					won.Add(1)
					winner.Store(data)
				}
				if got, err := b.log.BlobAs(b.ctx, c.run, key); err != nil || got == nil { // usable immediately
					b.Errorf("there is no blob after a write: %v", err)
				}
			})
		}
		wg.Wait()
		if got := string(c.under(key)); won.Load() != 1 || got != winner.Load() {
			b.Fatalf("%d of the writers stored it, the last of them %v; it is %q", won.Load(), winner.Load(), got)
		}
	}
}

// keyedSeparate checks that keys of other runs, and digests, name other blobs.
func keyedSeparate(b *bed) {
	digest := content.Digest([]byte("by digest"))
	var chains []*chain
	for _, id := range []string{"r", "R", "r-1"} {
		c := b.started(id)
		chains = append(chains, c)
		for _, key := range []string{digest, "k", "k-1"} {
			if c.under(key) != nil || !c.put(key, []byte(id+" "+key)) {
				b.Fatalf("key %s of run %s is taken", key, id)
			}
		}
	}
	_, err := b.log.Blob(b.ctx, chains[0].run, digest)
	b.wantErr(err, runlog.ErrNotFound)
	_, err = b.log.PutBlob(b.ctx, chains[0].run, []byte("by digest"))
	b.must(err)
	for _, c := range chains {
		for _, key := range []string{digest, "k", "k-1"} {
			if got := string(c.under(key)); got != c.run.ID+" "+key {
				b.Errorf("key %s of run %s has %q", key, c.run.ID, got)
			}
		}
	}
}

func keyedLost(b *bed) {
	faults := NewFaults(b.log)
	c := b.started("r")
	faults.loseWrites(1)
	_, err := faults.PutBlobAs(b.ctx, c.run, c.first(), "k", []byte("one"))
	b.wantErr(err, runlog.ErrUnavailable)
	if c.under("k") != nil {
		b.Fatal("a lost write is stored")
	}
	faults.loseAcks(1)
	stored, err := faults.PutBlobAs(b.ctx, c.run, c.first(), "k", []byte("one"))
	b.wantErr(err, runlog.ErrUnavailable)
	again, err := faults.PutBlobAs(b.ctx, c.run, c.first(), "k", []byte("two"))
	b.must(err)
	got, err := faults.BlobAs(b.ctx, c.run, "k")
	b.must(err)
	if stored || again || string(got) != "one" {
		b.Fatalf("stored is %v and %v, the blob is %q", stored, again, got)
	}
}

func keyedOwnCopy(b *bed) {
	c := b.started("r")
	data := noise(100)
	c.put("k", data)
	want := bytes.Clone(data)
	clear(data)
	for range 2 {
		got := c.under("k")
		if !bytes.Equal(got, want) {
			b.Fatal("the stored blob changed")
		}
		clear(got)
	}
}

var invalidKeys = []string{"", "A", "a.b", "a_b", "*", ">", "a b", "ä", strings.Repeat("k", 65)}

func keyedInvalid(b *bed) {
	c := b.started("r")
	c.put("k", []byte("of another key"))
	for _, key := range invalidKeys {
		_, err := b.log.PutBlobAs(b.ctx, c.run, c.first(), key, []byte("x"))
		_, rerr := b.log.BlobAs(b.ctx, c.run, key)
		for _, err := range []error{err, rerr} {
			if err == nil || errors.Is(err, runlog.ErrNotFound) || errors.Is(err, runlog.ErrUnavailable) {
				b.Errorf("key %q: %v", key, err)
			}
		}
	}
	for _, run := range []runlog.Run{{}, {Namespace: "suite", ID: "*"}, {Namespace: "*", ID: "r"}} {
		if _, err := b.log.PutBlobAs(b.ctx, run, c.first(), "k", []byte("x")); err == nil {
			b.Errorf("run %q was accepted", run)
		}
		if _, err := b.log.BlobAs(b.ctx, run, "k"); err == nil {
			b.Errorf("run %q was accepted", run)
		}
	}
}

// keyedGone checks that a blob of a run with another first record is not stored.
func keyedGone(b *bed) {
	c := b.started("r")
	other := c.near()
	other.append("repair")
	second := c.append("").Sequence
	item := c.give("i")
	for i, first := range []uint64{0, other.first(), second, item, item + 100} {
		_, err := b.log.PutBlobAs(b.ctx, c.run, first, "k", []byte("x"))
		b.wantErr(err, runlog.ErrNotFound)
		if c.under("k") != nil {
			b.Fatalf("attempt %d left a blob", i)
		}
	}
	unknown := runlog.Run{Namespace: "suite", ID: "unknown"}
	_, err := b.log.PutBlobAs(b.ctx, unknown, c.first(), "k", []byte("x"))
	b.wantErr(err, runlog.ErrNotFound)
	c.put("k", []byte("first"))
	_, err = b.log.PutBlobAs(b.ctx, c.run, second, "k", []byte("x"))
	b.wantErr(err, runlog.ErrNotFound)
	if !slices.Equal(c.under("k"), []byte("first")) {
		b.Fatal("a writer with another first record deleted the blob")
	}
}
