package runlogtest

import (
	"context"
	"fmt"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Faults is a log that fails on demand as a bus does. Without a demand it behaves as
// the log that it wraps.
type Faults struct {
	runlog.Log

	mu         sync.Mutex
	lostAcks   int
	lostWrites int
	drop       func(*runlog.Entry) bool
	held       chan struct{} // closed when reads may continue
	waiting    int
	arrived    chan struct{} // closed and replaced when a read starts to wait
	feeds      map[int]func(*runlog.Entry)
	nextFeed   int
}

var _ runlog.Log = (*Faults)(nil)

// NewFaults wraps a log.
func NewFaults(log runlog.Log) *Faults {
	return &Faults{Log: log, arrived: make(chan struct{}), feeds: map[int]func(*runlog.Entry){}}
}

// loseAcks makes the next n writes succeed and return ErrUnavailable.
func (f *Faults) loseAcks(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lostAcks = n
}

// loseWrites makes the next n writes return ErrUnavailable without being stored.
func (f *Faults) loseWrites(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lostWrites = n
}

// DropFeed drops the records of feeds for which drop returns true. It is called with
// one record at a time; nil drops nothing.
func (f *Faults) DropFeed(drop func(*runlog.Entry) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop = drop
}

// Interrupt interrupts all feeds.
func (f *Faults) Interrupt() {
	f.mu.Lock()
	feeds := make([]func(*runlog.Entry), 0, len(f.feeds))
	for _, feed := range f.feeds {
		feeds = append(feeds, feed)
	}
	f.mu.Unlock()
	for _, feed := range feeds {
		feed(nil)
	}
}

// HoldReads makes reads wait until release or the end of their context.
func (f *Faults) HoldReads() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(chan struct{})
	}
	held := f.held
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.held == held {
			close(held)
			f.held = nil
		}
	}
}

// AwaitReads returns when at least n reads wait.
func (f *Faults) AwaitReads(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		waiting, arrived := f.waiting, f.arrived
		f.mu.Unlock()
		if waiting >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Faults) await(ctx context.Context) error {
	f.mu.Lock()
	held := f.held
	if held == nil {
		f.mu.Unlock()
		return nil
	}
	f.waiting++
	close(f.arrived)
	f.arrived = make(chan struct{})
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
	}()
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("held read: %w: %w", runlog.ErrUnavailable, context.Cause(ctx))
	}
}

// write calls do unless the write or its answer is to be lost.
func (f *Faults) write(do func() error) error {
	f.mu.Lock()
	lost := f.lostWrites > 0
	if lost {
		f.lostWrites--
	}
	f.mu.Unlock()
	if lost {
		return fmt.Errorf("lost write: %w", runlog.ErrUnavailable)
	}
	if err := do(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lostAcks > 0 {
		f.lostAcks--
		return fmt.Errorf("lost answer: %w", runlog.ErrUnavailable)
	}
	return nil
}

// Append calls the log's Append, or fails.
func (f *Faults) Append(ctx context.Context, rec *harnessv1.Record) (sequence uint64, err error) {
	err = f.write(func() (err error) {
		sequence, err = f.Log.Append(ctx, rec)
		return err
	})
	if err != nil {
		return 0, err
	}
	return sequence, nil
}

// AppendInbox calls the log's AppendInbox, or fails.
func (f *Faults) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (sequence uint64, existed bool, err error) {
	err = f.write(func() (err error) {
		sequence, existed, err = f.Log.AppendInbox(ctx, run, item, after)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return sequence, existed, nil
}

// PutBlob calls the log's PutBlob, or fails.
func (f *Faults) PutBlob(ctx context.Context, run runlog.Run, data []byte) (ref *harnessv1.BlobRef, err error) {
	err = f.write(func() (err error) {
		ref, err = f.Log.PutBlob(ctx, run, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ref, nil
}

// PutBlobAs calls the log's PutBlobAs, or fails.
func (f *Faults) PutBlobAs(ctx context.Context, run runlog.Run, first uint64, key string, data []byte) (stored bool, err error) {
	err = f.write(func() (err error) {
		stored, err = f.Log.PutBlobAs(ctx, run, first, key, data)
		return err
	})
	return stored && err == nil, err
}

// CreateJob calls the log's CreateJob, or fails.
func (f *Faults) CreateJob(ctx context.Context, job *harnessv1.Job) (created bool, err error) {
	err = f.write(func() (err error) {
		created, err = f.Log.CreateJob(ctx, job)
		return err
	})
	return created && err == nil, err
}

// Erase calls the log's Erase, or fails.
func (f *Faults) Erase(ctx context.Context, run runlog.Run, keep, through uint64) error {
	return f.write(func() error { return f.Log.Erase(ctx, run, keep, through) })
}

// Read calls the log's Read once reads may continue.
func (f *Faults) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	if err := f.await(ctx); err != nil {
		return runlog.Entry{}, err
	}
	return f.Log.Read(ctx, run, sequence)
}

// View calls the log's View once reads may continue.
func (f *Faults) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	if err := f.await(ctx); err != nil {
		return runlog.View{}, err
	}
	return f.Log.View(ctx, run, contains)
}

// Newer calls the log's Newer once reads may continue.
func (f *Faults) Newer(ctx context.Context, run runlog.Run, sequence uint64) (bool, error) {
	if err := f.await(ctx); err != nil {
		return false, err
	}
	return f.Log.Newer(ctx, run, sequence)
}

// LastInbox calls the log's LastInbox once reads may continue.
func (f *Faults) LastInbox(ctx context.Context, run runlog.Run) (uint64, error) {
	if err := f.await(ctx); err != nil {
		return 0, err
	}
	return f.Log.LastInbox(ctx, run)
}

// Inbox calls the log's Inbox once reads may continue.
func (f *Faults) Inbox(ctx context.Context, run runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	if err := f.await(ctx); err != nil {
		return nil, err
	}
	return f.Log.Inbox(ctx, run, after, upTo)
}

// Blob calls the log's Blob once reads may continue.
func (f *Faults) Blob(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	if err := f.await(ctx); err != nil {
		return nil, err
	}
	return f.Log.Blob(ctx, run, digest)
}

// BlobAs calls the log's BlobAs once reads may continue.
func (f *Faults) BlobAs(ctx context.Context, run runlog.Run, key string) ([]byte, error) {
	if err := f.await(ctx); err != nil {
		return nil, err
	}
	return f.Log.BlobAs(ctx, run, key)
}

// Subscribe subscribes without the records that are dropped.
func (f *Faults) Subscribe(ctx context.Context, run runlog.Run, handle func(*runlog.Entry)) (func(), error) {
	var mu sync.Mutex // Interrupt calls from another goroutine
	stopped := false
	feed := func(e *runlog.Entry) {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			handle(e)
		}
	}
	stop, err := f.Log.Subscribe(ctx, run, func(e *runlog.Entry) {
		f.mu.Lock()
		dropped := e != nil && f.drop != nil && f.drop(e)
		f.mu.Unlock()
		if !dropped {
			feed(e)
		}
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.nextFeed
	f.nextFeed++
	f.feeds[id] = feed
	return func() {
		f.mu.Lock()
		delete(f.feeds, id)
		f.mu.Unlock()
		stop()
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}, nil
}
