package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Subscribe subscribes to the republished records of a run.
func (l *Log) Subscribe(_ context.Context, run runlog.Run, handle func(*runlog.Entry)) (func(), error) {
	var mu sync.Mutex // the reconnect callback runs on another goroutine
	stopped := false
	call := func(e *runlog.Entry) {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			handle(e)
		}
	}
	p := l.partition(run)
	sub, err := l.nc.Subscribe(runlog.LiveFilter(p, run), func(m *nats.Msg) {
		sequence, err := strconv.ParseUint(ofServer(m.Header, natsSequence), 10, 64)
		if err != nil || !l.certain(p, sequence) {
			call(nil) // the watcher reads the log
			return
		}
		e, _, err := l.decode(m)
		if err != nil || e.Run != run || e.Record == nil {
			return // a gap: the watcher reads the log
		}
		call(&e)
	})
	if err != nil {
		return nil, unavailable("watch "+run.String(), err)
	}
	unhook := l.hookReconnect(func() { call(nil) })
	return func() {
		unhook()
		_ = sub.Unsubscribe()
		mu.Lock()
		stopped = true
		mu.Unlock()
	}, nil
}

// PublishDelta sends text that the model is writing.
func (l *Log) PublishDelta(run runlog.Run, delta *harnessv1.Delta) error {
	data, err := proto.Marshal(delta)
	if err != nil {
		return fmt.Errorf("encode delta: %w", err)
	}
	return l.nc.Publish(runlog.DeltaSubject(run), data)
}

// SubscribeDeltas subscribes to the text of a run.
func (l *Log) SubscribeDeltas(run runlog.Run, handle func(*harnessv1.Delta)) (func(), error) {
	sub, err := l.nc.Subscribe(runlog.DeltaSubject(run), func(m *nats.Msg) {
		delta := &harnessv1.Delta{}
		if proto.Unmarshal(m.Data, delta) == nil {
			handle(delta)
		}
	})
	if err != nil {
		return nil, unavailable("listen to "+run.String(), err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Poke sends a hint to read the run's inbox.
func (l *Log) Poke(run runlog.Run) error {
	if err := l.nc.Publish(runlog.ControlSubject(run), nil); err != nil {
		return unavailable("poke "+run.String(), err)
	}
	return nil
}

// OnPoke subscribes to all hints.
func (l *Log) OnPoke(handle func(runlog.Run)) (func(), error) {
	sub, err := l.nc.Subscribe("hm.control.*.*", func(m *nats.Msg) {
		if run, err := runlog.ParseControl(m.Subject); err == nil {
			handle(run)
		}
	})
	if err != nil {
		return nil, unavailable("listen to pokes", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
