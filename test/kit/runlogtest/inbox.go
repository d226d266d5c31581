package runlogtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var inboxCases = map[string]func(*bed){
	"inbox/order":            inboxOrder,
	"inbox/same id once":     inboxSameID,
	"inbox/racing senders":   inboxRace,
	"inbox/100 items":        inboxItems,
	"inbox/128 KB":           inboxBytes,
	"inbox/long":             inboxLong,
	"inbox/too large":        inboxTooLarge,
	"inbox/lost answer":      inboxLostAnswer,
	"inbox/of another run":   inboxOther,
	"inbox/leaves the input": inboxLeaves,
	"inbox/own copy":         inboxOwnCopy,
}

func message(id, text string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)},
	}}
}

// send stores items one after another and returns their sequences.
func (b *bed) send(run runlog.Run, items ...*harnessv1.InboxItem) []uint64 {
	b.Helper()
	sequences := make([]uint64, len(items))
	for i, item := range items {
		sequence, existed, err := b.log.AppendInbox(b.ctx, run, item, 0)
		b.must(err)
		if existed {
			b.Fatalf("item %s existed", item.GetId())
		}
		sequences[i] = sequence
	}
	return sequences
}

func inboxOrder(b *bed) {
	c, other := b.chain("r"), b.chain("other")
	last, err := b.log.LastInbox(b.ctx, c.run)
	b.must(err)
	if last != 0 {
		b.Fatalf("an empty inbox ends at %d", last)
	}
	var sequences []uint64
	for i := range 10 {
		sequences = append(sequences, b.send(c.run, message(fmt.Sprint(i), fmt.Sprint("text ", i)))...)
		b.send(other.run, message(fmt.Sprint(i), "theirs"))
		other.grow(1)
	}
	last, err = b.log.LastInbox(b.ctx, c.run)
	b.must(err)
	if last != sequences[9] {
		b.Fatalf("the inbox ends at %d, want %d", last, sequences[9])
	}
	for from := range sequences {
		after := uint64(0)
		if from > 0 {
			after = sequences[from-1]
		}
		for to := from; to < len(sequences); to++ {
			items, err := b.log.Inbox(b.ctx, c.run, after, sequences[to])
			b.must(err)
			if len(items) != to-from+1 {
				b.Fatalf("(%d, %d] has %d items, want %d", after, sequences[to], len(items), to-from+1)
			}
			prev := after
			for i, item := range items {
				want := message(fmt.Sprint(from+i), fmt.Sprint("text ", from+i))
				want.PrevSequence, want.Sequence = prev, sequences[from+i]
				if !proto.Equal(item, want) {
					b.Fatalf("got %v, want %v", item, want)
				}
				prev = item.GetSequence()
			}
		}
	}
	items, err := b.log.Inbox(b.ctx, c.run, last, last)
	b.must(err)
	if len(items) != 0 {
		b.Fatalf("beyond the end: %v", items)
	}
}

func inboxSameID(b *bed) {
	run := b.chain("r").run
	var stored atomic.Int64
	sequences := make([]uint64, 16)
	var wg sync.WaitGroup
	for i := range sequences {
		wg.Go(func() {
			sequence, existed, err := b.log.AppendInbox(b.ctx, run, message("same", "text"), 0)
			if err != nil {
				b.Error(err)
			}
			if !existed {
				stored.Add(1)
			}
			sequences[i] = sequence
		})
	}
	wg.Wait()
	if stored.Load() != 1 {
		b.Fatalf("stored %d times", stored.Load())
	}
	for _, sequence := range sequences {
		if sequence != sequences[0] {
			b.Fatalf("one item at %v", sequences)
		}
	}
	// After the cursor it is a new item.
	sequence, existed, err := b.log.AppendInbox(b.ctx, run, message("same", "text"), sequences[0])
	b.must(err)
	if existed || sequence <= sequences[0] {
		b.Fatalf("after the cursor %d: %d, existed %v", sequences[0], sequence, existed)
	}
}

func inboxRace(b *bed) {
	run := b.chain("r").run
	const senders, each = 8, 10
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				item := message(fmt.Sprintf("%d-%d", s, i), "")
				_, existed, err := b.log.AppendInbox(b.ctx, run, item, 0)
				for errors.Is(err, runlog.ErrUnavailable) && b.ctx.Err() == nil { // a busy server has not answered; the item may be stored
					_, _, err = b.log.AppendInbox(b.ctx, run, item, 0)
					existed = false
				}
				if err != nil || existed {
					b.Error(existed, err)
				}
			}
		})
	}
	wg.Wait()
	last, err := b.log.LastInbox(b.ctx, run)
	b.must(err)
	items, err := b.log.Inbox(b.ctx, run, 0, last)
	b.must(err)
	next := map[string]int{}
	prev := uint64(0)
	for _, item := range items {
		sender, number, _ := strings.Cut(item.GetId(), "-")
		if number != fmt.Sprint(next[sender]) {
			b.Fatalf("item %s out of its sender's order", item.GetId())
		}
		next[sender]++
		if item.GetPrevSequence() != prev {
			b.Fatalf("item at %d names %d as the one before, which is %d", item.GetSequence(), item.GetPrevSequence(), prev)
		}
		prev = item.GetSequence()
	}
	if len(items) != senders*each {
		b.Fatalf("%d items", len(items))
	}
}

// drain reads the whole inbox in bounded parts.
func (b *bed) drain(run runlog.Run, upTo uint64) (parts [][]*harnessv1.InboxItem) {
	b.Helper()
	for cursor := uint64(0); cursor < upTo; {
		items, err := b.log.Inbox(b.ctx, run, cursor, upTo)
		b.must(err)
		if len(items) == 0 {
			b.Fatalf("(%d, %d] is empty", cursor, upTo)
		}
		parts = append(parts, items)
		cursor = items[len(items)-1].GetSequence()
	}
	return parts
}

func inboxItems(b *bed) {
	run := b.chain("r").run
	var sequences []uint64
	for i := range 2*runlog.MaxDrainItems + 50 {
		sequences = append(sequences, b.send(run, message(fmt.Sprint(i), ""))...)
	}
	parts := b.drain(run, sequences[len(sequences)-1])
	if len(parts) != 3 || len(parts[0]) != runlog.MaxDrainItems || len(parts[1]) != runlog.MaxDrainItems || len(parts[2]) != 50 {
		b.Fatalf("%d parts, the first of %d items", len(parts), len(parts[0]))
	}
	i := 0
	for _, part := range parts {
		for _, item := range part {
			if item.GetSequence() != sequences[i] {
				b.Fatalf("item %d at %d, want %d", i, item.GetSequence(), sequences[i])
			}
			i++
		}
	}
	// The last item is found, far beyond what one call of Inbox returns.
	sequence, existed, err := b.log.AppendInbox(b.ctx, run, message(fmt.Sprint(len(sequences)-1), ""), 0)
	b.must(err)
	if !existed || sequence != sequences[len(sequences)-1] {
		b.Fatalf("the same id again: at %d, existed %v", sequence, existed)
	}
}

func inboxBytes(b *bed) {
	run := b.chain("r").run
	for i := range 9 {
		b.send(run, message(fmt.Sprint(i), strings.Repeat("x", 31<<10)))
	}
	b.send(run, message("large", strings.Repeat("x", runlog.MaxDrainBytes+1)))
	last := b.send(run, message("small", ""))[0]
	var sizes []int
	for _, part := range b.drain(run, last) {
		sizes = append(sizes, len(part))
	}
	if want := []int{4, 4, 1, 1, 1}; fmt.Sprint(sizes) != fmt.Sprint(want) {
		b.Fatalf("parts of %v items, want %v", sizes, want)
	}
}

// inboxLong checks that an inbox stays usable while repair does not read it.
func inboxLong(b *bed) {
	run := b.chain("r").run
	var sequences []uint64
	for i := range 600 {
		sequence, _, err := b.log.AppendInbox(b.ctx, run, message(fmt.Sprint(i), ""), last(sequences))
		b.must(err)
		sequences = append(sequences, sequence)
	}
	items, err := b.log.Inbox(b.ctx, run, 0, last(sequences))
	b.must(err)
	if len(items) != runlog.MaxDrainItems || items[0].GetSequence() != sequences[0] || items[99].GetSequence() != sequences[99] {
		b.Fatalf("%d items from %d", len(items), items[0].GetSequence())
	}
}

func last(sequences []uint64) uint64 {
	if len(sequences) == 0 {
		return 0
	}
	return sequences[len(sequences)-1]
}

func inboxTooLarge(b *bed) {
	run := b.chain("r").run
	_, _, err := b.log.AppendInbox(b.ctx, run, message("x", strings.Repeat("x", runlog.MaxRecord)), 0)
	b.wantErr(err, runlog.ErrTooLarge)
	last, err := b.log.LastInbox(b.ctx, run)
	b.must(err)
	if last != 0 {
		b.Fatalf("stored at %d all the same", last)
	}
}

func inboxLostAnswer(b *bed) {
	faults := NewFaults(b.log)
	run := b.chain("r").run
	for _, lose := range []func(int){faults.loseAcks, faults.loseWrites} {
		id := fmt.Sprint(nonces.Add(1))
		lose(1)
		_, _, err := faults.AppendInbox(b.ctx, run, message(id, ""), 0)
		b.wantErr(err, runlog.ErrUnavailable)
		_, _, err = faults.AppendInbox(b.ctx, run, message(id, ""), 0)
		b.must(err)
	}
	last, err := b.log.LastInbox(b.ctx, run)
	b.must(err)
	items, err := b.log.Inbox(b.ctx, run, 0, last)
	b.must(err)
	if len(items) != 2 {
		b.Fatalf("2 inputs are %d items", len(items))
	}
}

// inboxOther checks that no sequence reads the inbox of another run.
func inboxOther(b *bed) {
	mine, theirs := b.chain("r"), b.chain("other")
	theirs.grow(1)
	sequence := b.send(theirs.run, message("secret", "secret"))[0]
	for _, at := range []uint64{sequence, theirs.newest()} {
		items, err := b.log.Inbox(b.ctx, mine.run, 0, at)
		if err == nil || len(items) != 0 {
			b.Fatalf("read %v, %v", items, err)
		}
	}
}

func inboxLeaves(b *bed) {
	run := b.chain("r").run
	b.send(run, message("1", ""))
	item := message("2", "text")
	before := proto.CloneOf(item)
	b.send(run, item)
	if !proto.Equal(item, before) {
		b.Fatalf("AppendInbox changed the item to %v", item)
	}
}

// inboxOwnCopy checks that neither the item that was passed nor the one that was
// returned is the stored one.
func inboxOwnCopy(b *bed) {
	run := b.chain("r").run
	item := message("1", "text")
	at := b.send(run, item)[0]
	item.GetUserMessage().Content = content.Inline("changed")
	for range 2 {
		items, err := b.log.Inbox(b.ctx, run, 0, at)
		b.must(err)
		if got := items[0].GetUserMessage().GetContent().GetInline(); got != "text" {
			b.Fatalf("the stored item changed to %q", got)
		}
		items[0].GetUserMessage().Content = nil
	}
}
