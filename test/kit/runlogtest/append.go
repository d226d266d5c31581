package runlogtest

import (
	"errors"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var appendCases = map[string]func(*bed){
	"append/creation is idempotent": creation,
	"append/2 writers":              func(b *bed) { race(b, 2, 50) },
	"append/16 writers":             func(b *bed) { race(b, 16, 200) },
	"append/creation races":         creationRace,
	"append/fenced":                 fenced,
	"append/settling":               settling,
	"append/refused":                refusedRecords,
	"append/leaves the record":      leavesRecord,
}

func creation(b *bed) {
	c := b.chain("r")
	first := c.next("repair")
	sequence, err := b.log.Append(b.ctx, first)
	b.must(err)
	for range 3 { // also equal records in other memory
		again, err := b.log.Append(b.ctx, proto.CloneOf(first))
		b.must(err)
		if again != sequence {
			b.Fatalf("created at %d and again at %d", sequence, again)
		}
	}
	_, err = b.log.Append(b.ctx, c.next("repair"))
	b.wantErr(err, runlog.ErrFenced)
	c.stored(first, sequence)
	c.grow(3)
	again, err := b.log.Append(b.ctx, first)
	b.must(err)
	if again != sequence {
		b.Fatalf("created at %d and, after other records, at %d", sequence, again)
	}
	c.whole()
}

// writers starts n concurrent appends and records the winner.
func (c *chain) writers(n int) {
	c.Helper()
	records := make([]*harnessv1.Record, n)
	sequences := make([]uint64, n)
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		records[i] = c.next([]string{"turn", "", "repair", runlog.Park}[i%4])
		wg.Go(func() {
			<-start
			sequences[i], errs[i] = c.log.Append(c.ctx, records[i])
		})
	}
	close(start)
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			c.Fatalf("version %d was stored twice, at %d and %d", records[i].GetVersion(), sequences[winner], sequences[i])
		case err == nil:
			winner = i
		case !errors.Is(err, runlog.ErrFenced):
			c.Fatal(err)
		}
	}
	if winner < 0 {
		c.Fatalf("no writer stored version %d", records[0].GetVersion())
	}
	c.stored(records[winner], sequences[winner])
}

func race(b *bed, writers, versions int) {
	c, other := b.chain("r"), b.chain("other")
	for range versions {
		c.writers(writers)
		other.grow(1) // other runs cause no conflict, and leave gaps in the sequences
	}
	c.whole()
	other.whole()
}

func creationRace(b *bed) {
	for _, id := range []string{"a", "b", "c", "d"} {
		c := b.chain(id)
		c.writers(8)
		c.whole()
	}
}

func fenced(b *bed) {
	c := b.chain("r")
	c.grow(3)
	late := c.next("turn")
	c.grow(1)
	_, err := b.log.Append(b.ctx, late)
	b.wantErr(err, runlog.ErrFenced)
	c.grow(5)
	_, err = b.log.Append(b.ctx, late)
	b.wantErr(err, runlog.ErrFenced)
	wrong := c.next("turn") // of a version that its fence does not lead to
	wrong.PrevSequence = c.entries[1].Sequence
	_, err = b.log.Append(b.ctx, wrong)
	b.wantErr(err, runlog.ErrFenced)
	c.whole()
}

func settling(b *bed) {
	faults := NewFaults(b.log)
	c := b.on(faults).chain("r")
	for _, to := range []string{"repair", "turn", ""} {
		// Stored, but the answer was lost: the second try finds its own record.
		rec := c.next(to)
		faults.loseAcks(1)
		_, err := faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrUnavailable)
		view, err := b.log.View(b.ctx, c.run, 0)
		b.must(err)
		sequence, err := faults.Append(b.ctx, rec)
		b.must(err)
		if sequence != view.Newest.Sequence {
			b.Fatalf("stored at %d, and settled as %d", view.Newest.Sequence, sequence)
		}
		c.stored(rec, sequence)

		// Not stored: the second try stores it.
		rec = c.next("turn")
		faults.loseWrites(1)
		_, err = faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrUnavailable)
		sequence, err = faults.Append(b.ctx, rec)
		b.must(err)
		c.stored(rec, sequence)

		// Not stored, and another writer stored the version meanwhile.
		rec = c.next("turn")
		faults.loseWrites(1)
		_, err = faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrUnavailable)
		c.append("")
		_, err = faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrFenced)

		// Stored, and followed by other records.
		rec = c.next("turn")
		faults.loseAcks(1)
		_, err = faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrUnavailable)
		view, err = b.log.View(b.ctx, c.run, 0)
		b.must(err)
		c.stored(rec, view.Newest.Sequence)
		c.grow(4)
		sequence, err = faults.Append(b.ctx, rec)
		b.must(err)
		if sequence != view.Newest.Sequence {
			b.Fatalf("stored at %d, and settled as %d", view.Newest.Sequence, sequence)
		}

		// The same nonce of another process is another record.
		rec = proto.CloneOf(rec)
		rec.Writer.Instance = "someone-else"
		_, err = faults.Append(b.ctx, rec)
		b.wantErr(err, runlog.ErrFenced)
	}
	c.whole()
}

func refusedRecords(b *bed) {
	c := b.chain("r")
	large := c.next("turn")
	large.GetStep().Snapshot.GoalPreview = strings.Repeat("x", runlog.MaxRecord)
	_, err := b.log.Append(b.ctx, large)
	b.wantErr(err, runlog.ErrTooLarge)
	for what, change := range map[string]func(*harnessv1.Record){
		"no body":             func(r *harnessv1.Record) { r.Body = nil },
		"an invalid run":      func(r *harnessv1.Record) { r.RunId = "a.b" },
		"an empty namespace":  func(r *harnessv1.Record) { r.Namespace = "" },
		"a wildcard":          func(r *harnessv1.Record) { r.RunId = "*" },
		"an invalid executor": func(r *harnessv1.Record) { r.GetStep().To = "a.b" },
		"no executor":         func(r *harnessv1.Record) { r.GetStep().To = "" },
		"no version":          func(r *harnessv1.Record) { r.Version = 0 },
		"no predecessor":      func(r *harnessv1.Record) { r.Version = 2 },
	} {
		rec := c.next("turn")
		change(rec)
		if _, err := b.log.Append(b.ctx, rec); err == nil {
			b.Errorf("a record with %s was stored", what)
		}
	}
	_, err = b.log.View(b.ctx, c.run, 0)
	b.wantErr(err, runlog.ErrNotFound)
}

func leavesRecord(b *bed) {
	c := b.chain("r")
	rec := c.next("turn")
	before := proto.CloneOf(rec)
	_, err := b.log.Append(b.ctx, rec)
	b.must(err)
	if !proto.Equal(rec, before) {
		b.Fatalf("Append changed the record to %v", rec)
	}
}
