package telemetry

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// BusCounters are the counters of a process's connection since its start.
type BusCounters struct {
	Connected                                  bool
	Reconnects                                 uint64
	Conflicts, ConflictsReplicated, Unanswered uint64 // writes without a decisive first answer
	Landed, Resent                             uint64 // the results of such writes
	Stale                                      uint64 // answers of replicas that lag
}

// BusState is the state of the bus, the same for all processes.
type BusState struct {
	Consumers []ConsumerState
	Streams   []StreamState
}

// ConsumerState is the state of an executor's consumer, over all partitions.
type ConsumerState struct {
	Executor                                  string
	Pending, AckPending, Redelivered, Waiting uint64
}

// StreamState is the state of a stream, in bytes. Limit 0: none.
type StreamState struct {
	Name        string
	Size, Limit uint64
}

// RunsState is the number of runs in a state. Reason is empty for running ones.
type RunsState struct {
	Status, Reason string
	Count          uint64
}

// observed creates gauges and counters whose values are read at each collection.
func (m *Metrics) observed(all []instrument, read func(ctx context.Context, set func(of instrument, value uint64, labels ...string))) error {
	if m == nil {
		return nil
	}
	type one struct {
		family
		to metric.Int64Observable
	}
	made := map[string]*one{}
	var list []metric.Observable
	for _, of := range all {
		o := &one{family: family{keys: of.Attributes}}
		var err error
		if of.Kind == Counter {
			o.to, err = m.meter.Int64ObservableCounter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		} else {
			o.to, err = m.meter.Int64ObservableGauge(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		}
		if err != nil {
			return fmt.Errorf("create instrument %s: %w", of.Name, err)
		}
		made[of.Name] = o
		list = append(list, o.to)
	}
	_, err := m.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		read(ctx, func(of instrument, value uint64, labels ...string) {
			o := made[of.Name]
			to.ObserveInt64(o.to, int64(value), o.with(labels...)) //nolint:gosec // far below the bound
		})
		return nil
	}, list...)
	if err != nil {
		return fmt.Errorf("create instruments: %w", err)
	}
	return nil
}

// ObserveProcess exposes the program's version and which of its roles are ready. ready
// is called at each collection.
func (m *Metrics) ObserveProcess(version string, ready func() map[string]bool) error {
	return m.observed([]instrument{buildInfo, roleReady}, func(_ context.Context, set func(instrument, uint64, ...string)) {
		set(buildInfo, 1, version, runtime.Version())
		for role, yes := range ready() {
			set(roleReady, one(yes), role)
		}
	})
}

func one(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// ObserveConnection exposes the counters of this process's connection to the bus.
func (m *Metrics) ObserveConnection(read func() BusCounters) error {
	return m.observed([]instrument{connected, reconnects, undecided, settled, stale}, func(_ context.Context, set func(instrument, uint64, ...string)) {
		c := read()
		set(connected, one(c.Connected))
		set(reconnects, c.Reconnects)
		set(undecided, c.Conflicts, "conflict")
		set(undecided, c.ConflictsReplicated, "conflict_replicated")
		set(undecided, c.Unanswered, "unanswered")
		set(settled, c.Landed, "landed")
		set(settled, c.Resent, "resent")
		set(stale, c.Stale)
	})
}

// ObserveRuns exposes the number of runs by state. read is called at each collection.
func (m *Metrics) ObserveRuns(read func() []RunsState) error {
	return m.observed([]instrument{runs}, func(_ context.Context, set func(instrument, uint64, ...string)) {
		for _, r := range read() {
			set(runs, r.Count, r.Status, r.Reason)
		}
	})
}

const (
	// readEvery is the minimum time between two reads of the bus, however often the
	// metrics are collected.
	readEvery = 5 * time.Second
	// readTime bounds one read.
	readTime = 2 * time.Second
)

// ObserveBus exposes the state of the bus, read at most every 5 s. While the bus is
// unavailable nothing is exposed: old figures would look current.
func (m *Metrics) ObserveBus(read func(ctx context.Context) (BusState, error)) error {
	var mu sync.Mutex
	var last BusState
	var at time.Time
	return m.observed([]instrument{pending, ackPending, redelivering, waiting, streamBytes, streamLimit}, func(ctx context.Context, set func(instrument, uint64, ...string)) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= readEvery {
			ctx, cancel := context.WithTimeout(ctx, readTime)
			defer cancel()
			state, err := read(ctx)
			if err != nil {
				state = BusState{}
			}
			last, at = state, now
		}
		for _, c := range last.Consumers {
			set(pending, c.Pending, c.Executor)
			set(ackPending, c.AckPending, c.Executor)
			set(redelivering, c.Redelivered, c.Executor)
			set(waiting, c.Waiting, c.Executor)
		}
		for _, s := range last.Streams {
			set(streamBytes, s.Size, s.Name)
			if s.Limit > 0 {
				set(streamLimit, s.Limit, s.Name)
			}
		}
	})
}
