package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// firstExecutor is the one that every run is given to at first.
const firstExecutor = "repair"

// standing says whether a message tells how its run stands.
func (m *message) standing() bool {
	return m.kind == runlog.KindStep && (m.to == firstExecutor || runlog.IsRest(m.to))
}

// follower is a call of Runs.
type follower struct {
	queue []runlog.Entry
	wake  chan struct{} // has room for one
}

// Runs follows the steps that say how runs stand.
func (l *Log) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	f := &follower{wake: make(chan struct{}, 1)}
	if err := l.enter(ctx, "follow runs"); err != nil {
		return ended(ctx, err)
	}
	f.queue = l.stand()
	l.followers = append(l.followers, f)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.followers = without(l.followers, f)
	}()
	for behind := len(f.queue); ; behind-- {
		if behind == 0 && caughtUp != nil && ctx.Err() == nil {
			caughtUp()
		}
		e, err := l.nextOf(ctx, f)
		if err != nil {
			return err
		}
		handle(e)
	}
}

// nextOf waits for the next step that a follower is told of.
func (l *Log) nextOf(ctx context.Context, f *follower) (runlog.Entry, error) {
	for {
		if err := l.enter(ctx, "follow runs"); err != nil {
			return runlog.Entry{}, ended(ctx, err)
		}
		if len(f.queue) > 0 {
			e := f.queue[0]
			f.queue = f.queue[1:]
			l.mu.Unlock()
			return e, nil
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-l.closed:
		case <-f.wake:
		}
	}
}

// stand returns the newest step of each run to each of the places that say how it
// stands, by sequence.
func (l *Log) stand() []runlog.Entry {
	var all []runlog.Entry
	for _, r := range l.runs {
		seen := map[string]bool{}
		for i := len(r.records) - 1; i >= 0 && len(seen) < 3; i-- {
			if m := r.records[i]; m.standing() && !seen[m.to] {
				seen[m.to] = true
				all = append(all, m.entry)
			}
		}
	}
	slices.SortFunc(all, func(a, b runlog.Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// follow tells followers of a step.
func (l *Log) follow(e runlog.Entry) {
	for _, f := range l.followers {
		f.queue = append(f.queue, e)
		signal(f.wake)
	}
}
