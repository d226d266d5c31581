package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// feeds are the subscriptions. Who calls their methods has locked the log.
type feeds struct {
	records map[runlog.Run][]*feed[runlog.Entry]
	deltas  map[runlog.Run][]*feed[[]byte]
	pokes   []*feed[runlog.Run]
	running sync.WaitGroup
}

func newFeeds() feeds {
	return feeds{records: map[runlog.Run][]*feed[runlog.Entry]{}, deltas: map[runlog.Run][]*feed[[]byte]{}}
}

// stop ends all subscriptions.
func (f *feeds) stop() {
	for _, all := range f.records {
		stopAll(all)
	}
	for _, all := range f.deltas {
		stopAll(all)
	}
	stopAll(f.pokes)
}

func stopAll[T any](all []*feed[T]) {
	for _, f := range all {
		f.stop()
	}
}

// feed passes values on to a handler, one after another, in a goroutine of its own.
type feed[T any] struct {
	mu      *sync.Mutex // the log's
	queue   []T
	stopped bool
	wake    chan struct{} // has room for one
	done    chan struct{} // closed when the handler will not be called any more
}

// listen starts a feed.
func listen[T any](l *Log, handle func(T)) *feed[T] {
	f := &feed[T]{mu: &l.mu, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.feeds.running.Go(func() {
		defer close(f.done)
		for {
			v, ok := f.next()
			if !ok {
				return
			}
			handle(v)
		}
	})
	return f
}

// next waits for a value; not ok is the end.
func (f *feed[T]) next() (v T, ok bool) {
	for {
		f.mu.Lock()
		if f.stopped {
			f.mu.Unlock()
			return v, false
		}
		if len(f.queue) > 0 {
			v, f.queue = f.queue[0], f.queue[1:]
			f.mu.Unlock()
			return v, true
		}
		f.mu.Unlock()
		<-f.wake
	}
}

func (f *feed[T]) push(v T) {
	f.queue = append(f.queue, v)
	signal(f.wake)
}

func (f *feed[T]) stop() {
	f.stopped, f.queue = true, nil
	signal(f.wake)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// without is all but one, in a list of its own: the old one may be in use.
func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(other T) bool { return other == one })
}

// Subscribe listens to the records of a run as they are stored. stop returns when
// handle has, and so must not be called by it.
func (l *Log) Subscribe(_ context.Context, name runlog.Run, handle func(*runlog.Entry)) (stop func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, unavailable("watch "+name.String(), errClosed)
	}
	f := listen(l, func(e runlog.Entry) { handle(&e) })
	l.feeds.records[name] = append(l.feeds.records[name], f)
	return func() {
		l.mu.Lock()
		f.stop()
		leave(l.feeds.records, name, f)
		l.mu.Unlock()
		<-f.done
	}, nil
}

// leave takes a feed out of those of a run.
func leave[T any](all map[runlog.Run][]*feed[T], name runlog.Run, f *feed[T]) {
	if all[name] = without(all[name], f); len(all[name]) == 0 {
		delete(all, name)
	}
}

// feed passes a record on to those who watch its run. One that cannot be decoded
// is a gap: the watcher reads the log.
func (l *Log) feed(e runlog.Entry) {
	if e.Record == nil {
		return
	}
	for _, f := range l.feeds.records[e.Run] {
		f.push(e)
	}
}

// PublishDelta sends text that the model is writing.
func (l *Log) PublishDelta(name runlog.Run, delta *harnessv1.Delta) error {
	data, err := proto.Marshal(delta)
	if err != nil {
		return fmt.Errorf("encode delta: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return unavailable("delta of "+name.String(), errClosed)
	}
	for _, f := range l.feeds.deltas[name] {
		f.push(data)
	}
	return nil
}

// SubscribeDeltas listens to the text of a run. After stop handle may be at its
// last call.
func (l *Log) SubscribeDeltas(name runlog.Run, handle func(*harnessv1.Delta)) (stop func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, unavailable("listen to "+name.String(), errClosed)
	}
	f := listen(l, func(data []byte) {
		delta := &harnessv1.Delta{} // the handler's own
		if proto.Unmarshal(data, delta) == nil {
			handle(delta)
		}
	})
	l.feeds.deltas[name] = append(l.feeds.deltas[name], f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		f.stop()
		leave(l.feeds.deltas, name, f)
	}, nil
}

// Poke says "look at your inbox now".
func (l *Log) Poke(name runlog.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return unavailable("poke "+name.String(), errClosed)
	}
	if name.Valid() {
		for _, f := range l.feeds.pokes {
			f.push(name)
		}
	}
	return nil
}

// OnPoke hears all pokes. After stop handle may be at its last call.
func (l *Log) OnPoke(handle func(runlog.Run)) (stop func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, unavailable("listen to pokes", errClosed)
	}
	f := listen(l, handle)
	l.feeds.pokes = append(l.feeds.pokes, f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		f.stop()
		l.feeds.pokes = without(l.feeds.pokes, f)
	}, nil
}
