package runlog

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// silence is how long a watcher trusts a quiet feed before it reads the log.
const silence = 10 * time.Second

// Back returns the records of from's run with versions above after and up to
// from, oldest first. It walks prev_sequence, so it costs one exact read per
// record and never scans other runs' traffic.
func Back(ctx context.Context, log Log, from Entry, after uint64) ([]Entry, error) {
	if from.Header.Version <= after {
		return nil, nil
	}
	entries := make([]Entry, from.Header.Version-after)
	for e := from; ; {
		if e.Record == nil {
			return nil, fmt.Errorf("record at sequence %d: %w", e.Sequence, e.Err)
		}
		v := e.Record.GetVersion()
		entries[v-after-1] = e
		if v == after+1 {
			return entries, nil
		}
		prev, err := log.Read(ctx, e.Run, e.Record.GetPrevSequence())
		if err != nil {
			return nil, fmt.Errorf("version %d: %w", v-1, err)
		}
		if prev.Header.Version != v-1 {
			return nil, fmt.Errorf("sequence %d holds version %d, want %d", prev.Sequence, prev.Header.Version, v-1)
		}
		e = prev
	}
}

// Watch calls handle with the records of run after version after, strictly by
// version, each once, until handle returns an error (which Watch returns),
// ctx ends or the log cannot be read; a new watch may go on from there. caughtUp, when not nil, is called once after everything that was
// stored at the start has been handled; its error ends the watch too.
//
// It listens to the feed first and reads the log then; on a gap, an
// interruption or ten seconds of silence it reads again, because the feed may
// drop records.
func Watch(ctx context.Context, log Log, run Run, after uint64, handle func(Entry) error, caughtUp func() error) error {
	feed := make(chan *Entry, 256)
	var missed atomic.Bool
	stop, err := log.Subscribe(ctx, run, func(e *Entry) {
		select {
		case feed <- e:
		default: // the reader is behind; it reads the log once it has emptied the feed
			missed.Store(true)
		}
	})
	if err != nil {
		return err
	}
	defer stop()

	next := after + 1
	deliver := func(from Entry) error {
		entries, err := Back(ctx, log, from, next-1)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := handle(e); err != nil {
				return err
			}
			next = e.Header.Version + 1
		}
		return nil
	}
	catchUp := func(contains uint64) error {
		view, err := log.View(ctx, run, contains)
		if err != nil {
			return err
		}
		return deliver(view.Newest)
	}
	if err := catchUp(0); err != nil {
		return err
	}
	if caughtUp != nil {
		if err := caughtUp(); err != nil {
			return err
		}
	}
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-feed:
			switch {
			case e == nil:
				err = catchUp(0)
			case e.Header.Version == next && e.Record != nil:
				if err = handle(*e); err == nil {
					next++
				}
			case e.Header.Version >= next:
				err = deliver(*e)
			}
		case <-quiet.C:
			err = catchUp(0)
		}
		if err == nil && len(feed) == 0 && missed.Swap(false) {
			err = catchUp(0)
		}
		if err != nil {
			return err
		}
		quiet.Reset(silence)
	}
}
