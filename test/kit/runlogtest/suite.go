// Package runlogtest has the suite of tests that every implementation of runlog.Log
// must pass, and a decorator that makes a log fail as a bus does.
package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// patience bounds one test. It is long, because no test waits for it to end.
const patience = 2 * time.Minute

// Suite runs all tests of the interface. For each, with calls test once, with a
// separate, empty log on which at least the executors repair, compaction, turn and
// stopdecision, and jobs, are provisioned. with cleans up after test. It may run test in a bubble
// of testing/synctest.
func Suite(t *testing.T, with func(t *testing.T, test func(t *testing.T, log runlog.Log))) {
	for _, group := range []map[string]func(*bed){
		appendCases, readCases, inboxCases, blobCases, watchCases, consumeCases, wakeCases, runsCases, feedCases,
		eraseCases, floorCases, hookCases, waitCases, keyedCases, jobCases, eraseJobCases, valueCases,
	} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				with(t, func(t *testing.T, log runlog.Log) {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					t.Cleanup(cancel)
					run(&bed{T: t, ctx: ctx, log: log})
				})
			})
		}
	}
}

// bed is a test with its log.
type bed struct {
	*testing.T
	ctx context.Context //nolint:containedctx // ends with the test
	log runlog.Log
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) wantErr(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got %v, want %v", err, want)
	}
}

// on returns the same test with another log.
func (b *bed) on(log runlog.Log) *bed { return &bed{T: b.T, ctx: b.ctx, log: log} }

// recv waits for a value.
func recv[T any](b *bed, from <-chan T, what string) T {
	b.Helper()
	select {
	case v := <-from:
		return v
	case <-b.ctx.Done():
		b.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// background runs f until stop, which ends its context, waits and returns its error.
func (b *bed) background(f func(ctx context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-ended
		})
		return err
	}
	b.Cleanup(func() { _ = stop() })
	return stop
}

var nonces atomic.Uint64

// chain writes the log of one run.
type chain struct {
	*bed
	run     runlog.Run
	entries []runlog.Entry
}

func (b *bed) chain(id string) *chain {
	return &chain{bed: b, run: runlog.Run{Namespace: "suite", ID: id}}
}

func (c *chain) version() uint64 { return uint64(len(c.entries)) }

func (c *chain) newest() uint64 {
	if len(c.entries) == 0 {
		return 0
	}
	return c.entries[len(c.entries)-1].Sequence
}

// next returns a record that may follow: a step to an executor, or journal for "".
func (c *chain) next(to string) *harnessv1.Record {
	nonce := nonces.Add(1)
	rec := &harnessv1.Record{
		Namespace: c.run.Namespace, RunId: c.run.ID, Version: c.version() + 1, PrevSequence: c.newest(), Schema: runlog.Schema,
		Writer: &harnessv1.Writer{Executor: "suite", Instance: "w", Nonce: nonce},
	}
	if to == "" {
		rec.Body = &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
			Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: uint32(nonce)}},
		}}
		return rec
	}
	rec.Body = &harnessv1.Record_Step{Step: &harnessv1.Step{
		From: "suite", To: to, Snapshot: &harnessv1.Snapshot{GoalPreview: fmt.Sprint("goal ", nonce), InboxCursor: c.version()},
	}}
	return rec
}

// append stores the next record.
func (c *chain) append(to string) runlog.Entry {
	c.Helper()
	rec := c.next(to)
	sequence, err := c.log.Append(c.ctx, rec)
	c.must(err)
	return c.stored(rec, sequence)
}

// stored records that a record is in the log.
func (c *chain) stored(rec *harnessv1.Record, sequence uint64) runlog.Entry {
	e := runlog.Entry{Run: c.run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	c.entries = append(c.entries, e)
	return e
}

// grow appends n records, steps and journal in turn.
func (c *chain) grow(n int) {
	c.Helper()
	for range n {
		if c.version()%3 == 0 {
			c.append("turn")
		} else {
			c.append("")
		}
	}
}

// same fails unless the entries are equal.
func (b *bed) same(got, want runlog.Entry) {
	b.Helper()
	if got.Run != want.Run || got.Sequence != want.Sequence || got.Header != want.Header || got.Err != nil || !proto.Equal(got.Record, want.Record) {
		b.Fatalf("got %v at %d (%v, %v)\n%v\nwant %v at %d (%v)\n%v",
			got.Run, got.Sequence, got.Header, got.Err, got.Record, want.Run, want.Sequence, want.Header, want.Record)
	}
}

// whole fails unless the log, read back from its newest record, is c's.
func (c *chain) whole() {
	c.Helper()
	view, err := c.log.View(c.ctx, c.run, c.newest())
	c.must(err)
	entries, err := runlog.Back(c.ctx, c.log, view.Newest, 0)
	c.must(err)
	if len(entries) != len(c.entries) {
		c.Fatalf("%d records, want %d", len(entries), len(c.entries))
	}
	for i, e := range entries {
		c.same(e, c.entries[i])
	}
}
