package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var eraseJobCases = map[string]func(*bed){
	"erase/jobs":                 eraseJobs,
	"erase/jobs, kept":           eraseJobsKept,
	"erase/jobs, one record":     eraseJobsOfOneRecord,
	"erase/jobs, same name":      eraseJobsSameName,
	"erase/jobs, through":        eraseJobsThrough,
	"erase/jobs, delivered":      eraseJobsDelivered,
	"erase/jobs, while written":  eraseJobsWhileWritten,
	"erase/jobs, several of one": eraseJobsConcurrently,
	"erase/jobs, broken off":     eraseJobsBroken,
	"erase/jobs, new run":        eraseJobsNewRun,
}

// lateWrites fails unless writes for c's run, which is gone, are refused and leave
// nothing.
func (c *chain) lateWrites(keys ...string) {
	c.Helper()
	for _, key := range append(keys, "late") {
		if got := c.under(key); got != nil {
			c.Fatalf("key %s still has %q", key, got)
		}
		_, err := c.log.PutBlobAs(c.ctx, c.run, c.first(), key, []byte("late"))
		c.wantErr(err, runlog.ErrNotFound)
		_, err = c.log.CreateJob(c.ctx, c.job(key))
		c.wantErr(err, runlog.ErrNotFound)
		if got := c.under(key); got != nil {
			c.Fatalf("a late write left %q under key %s", got, key)
		}
	}
}

// Repeated deliveries of noJobs.
const (
	repeatJob      = 10 * time.Millisecond
	repeatSentinel = 5 * repeatJob
	mostRepeats    = 20
)

// noJobs fails if a job of the partition of c's run is stored, except those of other.
// Jobs that were not delivered are delivered now, in the order of the stream.
//
// A replica that lags can deliver a job that is erased, so such a job is sent back: a stored
// one comes again and again.
func (c *chain) noJobs(other ...*chain) {
	c.Helper()
	sentinel := c.near()
	sentinel.append("repair")
	want := sentinel.create("sentinel")
	deliveries, stop := c.jobs()
	returned, quiet := map[string]int{}, true
	for {
		d := recv(c.bed, deliveries, "the sentinel")
		switch job := d.Job(); {
		case job.GetRunId() == want.GetRunId():
			if !quiet { // the jobs sent back come before it
				quiet = true
				c.must(d.Nak(repeatSentinel))
				continue
			}
			c.must(d.Ack())
			_ = stop()
			c.must(c.log.Erase(c.ctx, sentinel.run, 0, runlog.Everything))
			return
		case slices.ContainsFunc(other, func(o *chain) bool { return o.run.ID == job.GetRunId() && o.first() == job.GetFirstSequence() }):
			c.must(d.Ack())
		default:
			id := fmt.Sprintf("job %s of %s with the first record %d", job.GetKey(), job.GetRunId(), job.GetFirstSequence())
			if returned[id]++; returned[id] == mostRepeats {
				c.Fatalf("%s is stored", id)
			}
			quiet = false
			c.must(d.Nak(repeatJob))
		}
	}
}

// withJobs grows c and stores a job and a blob under each key.
func (c *chain) withJobs(records int, keys ...string) *chain {
	c.Helper()
	c.grow(records)
	for _, key := range keys {
		c.create(key)
		if !c.put(key, []byte("of "+key)) {
			c.Fatalf("there is a blob under key %s", key)
		}
	}
	return c
}

// has fails unless c's run has its jobs and its blobs.
func (c *chain) has(keys ...string) {
	c.Helper()
	for _, key := range keys {
		if got := c.under(key); string(got) != "of "+key {
			c.Fatalf("key %s of %v has %q", key, c.run, got)
		}
		if created, err := c.log.CreateJob(c.ctx, c.job(key)); created || err != nil {
			c.Fatalf("job %s of %v was gone: %v", key, c.run, err)
		}
	}
}

// eraseJobs checks that jobs and keyed blobs are erased with their run, and that those
// of runs with similar names are not.
func eraseJobs(b *bed) {
	c := b.chain("r").withJobs(5, "a", "b")
	var others []*chain
	for _, run := range []runlog.Run{{Namespace: "suite", ID: "r-b"}, {Namespace: "suite", ID: "R"}, {Namespace: "suite-a", ID: "r"}} {
		others = append(others, (&chain{bed: b, run: run}).withJobs(2, "a", "b"))
	}
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	c.lateWrites("a", "b")
	for _, other := range others {
		other.has("a", "b")
	}
	c.noJobs(others...)
}

// eraseJobsKept checks that a run of which one record is kept has no jobs, also after a
// late write.
func eraseJobsKept(b *bed) {
	for i := 1; i < 4; i++ {
		c := b.chain(fmt.Sprint("r", i)).withJobs(4, "a")
		for range 2 {
			b.must(b.log.Erase(b.ctx, c.run, c.entries[i].Sequence, runlog.Everything))
			c.lateWrites("a")
			_, err := b.log.PutBlobAs(b.ctx, c.run, c.entries[i].Sequence, "a", nil)
			b.wantErr(err, runlog.ErrNotFound) // the kept record is not the first
			c.noJobs()
		}
	}
}

func eraseJobsOfOneRecord(b *bed) {
	c := b.chain("r").withJobs(1, "a")
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	c.lateWrites("a")
	c.noJobs()
}

// eraseJobsSameName checks that writers of an erased run do not touch the jobs and blobs
// of another one of its name, which may have the same keys.
func eraseJobsSameName(b *bed) {
	old := b.chain("r").withJobs(3, "a", "b")
	b.must(b.log.Erase(b.ctx, old.run, 0, runlog.Everything))
	c := b.chain("r").withJobs(3, "a", "b")
	for _, key := range []string{"a", "late"} {
		_, err := b.log.PutBlobAs(b.ctx, old.run, old.first(), key, []byte("late"))
		b.wantErr(err, runlog.ErrNotFound)
		_, err = b.log.CreateJob(b.ctx, old.job(key))
		b.wantErr(err, runlog.ErrNotFound)
	}
	b.must(b.log.Erase(b.ctx, old.run, 0, old.newest()))
	c.has("a", "b")
	if got := c.under("late"); got != nil {
		b.Errorf("the late write left %q", got)
	}
	c.noJobs(c)
}

// eraseJobsThrough checks that an erasure with an old bound keeps jobs and blobs, and
// that one with the newest bound erases those that were stored after it.
func eraseJobsThrough(b *bed) {
	c := b.chain("r").withJobs(3, "a")
	seen := c.newest()
	late := c.give("late")
	b.must(b.log.Erase(b.ctx, c.run, c.newest(), seen-1))
	if got := c.under("a"); string(got) != "of a" {
		b.Fatalf("the blob is %q", got)
	}
	d := b.chain("s").withJobs(3)
	last := d.newest()
	d.create("after-the-last")
	b.must(b.log.Erase(b.ctx, d.run, 0, last))
	d.lateWrites()
	b.must(b.log.Erase(b.ctx, c.run, 0, late))
	c.lateWrites("a")
	c.noJobs()
	d.noJobs()
}

// eraseJobsDelivered checks that an unacknowledged job of an erased run is not
// redelivered, except by a replica that lags.
func eraseJobsDelivered(b *bed) {
	c := b.chain("r").withJobs(2, "a")
	sentinel := c.near()
	sentinel.append("repair")
	deliveries, _ := b.jobs()
	d := b.recvJob(deliveries, c.job("a"), false)
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	_ = d.InProgress() // there is nothing to keep or to put back
	_ = d.Nak(0)
	want := sentinel.create("k")
	returned := 0
	for _, redelivered := range []bool{false, true} {
		d := recv(b, deliveries, "job k")
		for ; d.Job().GetRunId() == c.run.ID; d = recv(b, deliveries, "job k") {
			if returned++; returned == mostRepeats {
				b.Fatalf("job %s of an erased run is stored", d.Job().GetKey())
			}
			b.must(d.Nak(repeatJob))
		}
		if !proto.Equal(d.Job(), want) || d.Redelivered() != redelivered {
			b.Fatalf("got, redelivered %v,\n%v\nwant\n%v", d.Redelivered(), d.Job(), want)
		}
	}
}

// eraseJobsWhileWritten checks that nothing is left by writers that work during an
// erasure, whatever the order of their reads and writes and those of the erasure.
func eraseJobsWhileWritten(b *bed) {
	for round := range 8 {
		c := b.chain(fmt.Sprint("r", round))
		c.grow(1 + round%4)
		keep := uint64(0)
		if round%2 == 1 { // then there is more than one record
			keep = c.newest()
		}
		c.eraseWhileWritten(keep)
	}
}

// writerKeys are few, so that an erasure keeps up with writers.
var writerKeys = []string{"a", "b", "c", "d"}

func (c *chain) eraseWhileWritten(keep uint64) {
	c.Helper()
	var writers sync.WaitGroup
	started := make(chan struct{})
	var first sync.Once
	for _, store := range []func(key string) error{
		func(key string) error {
			_, err := c.log.PutBlobAs(c.ctx, c.run, c.first(), key, []byte("x"))
			return err
		},
		func(key string) error {
			_, err := c.log.PutBlobAs(c.ctx, c.run, c.first(), key, []byte("x"))
			return err
		},
		func(key string) error { _, err := c.log.CreateJob(c.ctx, c.job(key)); return err },
	} {
		writers.Go(func() {
			for i := 0; ; i++ { // until the run is gone
				err := store(writerKeys[i%len(writerKeys)])
				first.Do(func() { close(started) })
				if err != nil {
					if !errors.Is(err, runlog.ErrNotFound) {
						c.Error(err)
					}
					return
				}
			}
		})
	}
	recv(c.bed, started, "a write")
	c.must(c.log.Erase(c.ctx, c.run, keep, runlog.Everything))
	writers.Wait()
	for _, key := range writerKeys {
		if c.under(key) != nil {
			c.Fatalf("%d records, kept %d: the blob under %s is left", len(c.entries), keep, key)
		}
	}
	c.noJobs()
}

// eraseJobsConcurrently checks that callers that store the same job and blob during an
// erasure agree, and leave nothing.
func eraseJobsConcurrently(b *bed) {
	for round := range 6 {
		c := b.chain(fmt.Sprint("r", round))
		c.grow(2)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for _, store := range []func() error{
					func() error { _, err := b.log.PutBlobAs(b.ctx, c.run, c.first(), "k", []byte("x")); return err },
					func() error { _, err := b.log.CreateJob(b.ctx, c.job("k")); return err },
				} {
					if err := store(); err != nil && !errors.Is(err, runlog.ErrNotFound) {
						b.Error(err)
					}
				}
			})
		}
		b.must(b.log.Erase(b.ctx, c.run, c.newest()*uint64(round%2), runlog.Everything))
		wg.Wait()
		c.lateWrites("k")
		c.noJobs()
	}
}

// eraseJobsBroken checks that an erasure that is interrupted at about the deletion of the
// newest record can be repeated, or has left nothing.
func eraseJobsBroken(b *bed) {
	for round := range 9 {
		c := b.chain(fmt.Sprint("r", round)).withJobs(1+2*(round%3), "a")
		ctx, cancel := context.WithCancel(b.ctx)
		ended := make(chan error, 1)
		go func() { ended <- b.log.Erase(ctx, c.run, 0, runlog.Everything) }()
		b.until("a newest record that is gone", func() bool { return !c.readable(c.newest()) })
		cancel()
		if err := recv(b, ended, "the end of the erasure"); err != nil {
			b.wantErr(err, runlog.ErrUnavailable)
		}
		b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
		if got := c.under("a"); got != nil {
			b.Fatalf("%d records: the blob %q is left", c.version(), got)
		}
		c.noJobs()
	}
}

// eraseJobsNewRun checks that a run of the same name, which starts while erasures still
// run, keeps its jobs and blobs.
func eraseJobsNewRun(b *bed) {
	for round := range 12 {
		old := b.chain(fmt.Sprint("r", round)).withJobs(1+round%2, "a")
		var erasures sync.WaitGroup
		for range 3 {
			erasures.Go(func() {
				if err := b.log.Erase(b.ctx, old.run, 0, old.newest()); err != nil {
					b.Error(err)
				}
			})
		}
		c := b.chain(old.run.ID)
		b.until("the next run of the name", func() bool {
			rec := c.next("repair")
			sequence, err := b.log.Append(b.ctx, rec)
			if errors.Is(err, runlog.ErrFenced) {
				return false
			}
			b.must(err)
			c.stored(rec, sequence)
			return true
		})
		for _, key := range []string{"a", "b"} { // the first may still be the old one's
			_, err := b.log.CreateJob(b.ctx, c.job(key))
			b.must(err)
			_, err = b.log.PutBlobAs(b.ctx, c.run, c.first(), key, []byte("of "+key))
			b.must(err)
		}
		erasures.Wait()
		c.has("a", "b")
		b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
		c.noJobs()
	}
}
