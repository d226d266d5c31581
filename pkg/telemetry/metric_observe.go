package telemetry

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// BusCounters are what a process has counted on its connection since its start.
type BusCounters struct {
	Connected                                  bool
	Reconnects                                 uint64
	Conflicts, ConflictsReplicated, Unanswered uint64 // writes whose first answer decided nothing
	Landed, Resent                             uint64 // what they came to
	Stale                                      uint64 // answers of replicas that were behind
}

// BusState is how the bus stands, the same for everybody who looks.
type BusState struct {
	Consumers []ConsumerState
	Streams   []StreamState
}

// ConsumerState is how the consumer of an executor stands, over all partitions.
type ConsumerState struct {
	Executor                                  string
	Pending, AckPending, Redelivered, Waiting uint64
}

// StreamState is how a stream stands, in bytes. Limit 0: none.
type StreamState struct {
	Name        string
	Size, Limit uint64
}

// RunsState is how many runs stand so. Reason is empty for those that work.
type RunsState struct {
	Status, Reason string
	Count          uint64
}

// observed makes gauges and counters whose values are asked for when somebody
// collects.
func (m *Metrics) observed(all []Instrument, look func(ctx context.Context, set func(of Instrument, value uint64, labels ...string))) error {
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
			return fmt.Errorf("make instrument %s: %w", of.Name, err)
		}
		made[of.Name] = o
		list = append(list, o.to)
	}
	_, err := m.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		look(ctx, func(of Instrument, value uint64, labels ...string) {
			o := made[of.Name]
			to.ObserveInt64(o.to, int64(value), o.with(labels...)) //nolint:gosec // far below the bound
		})
		return nil
	}, list...)
	if err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	return nil
}

// ObserveProcess shows what this program is and which of its roles are ready.
// ready is called at each collection.
func (m *Metrics) ObserveProcess(version string, ready func() map[string]bool) error {
	return m.observed([]Instrument{buildInfo, roleReady}, func(_ context.Context, set func(Instrument, uint64, ...string)) {
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

// ObserveConnection shows what this process counts on its connection to the bus.
func (m *Metrics) ObserveConnection(read func() BusCounters) error {
	return m.observed([]Instrument{connected, reconnects, undecided, settled, stale}, func(_ context.Context, set func(Instrument, uint64, ...string)) {
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

// ObserveRuns shows how many runs stand how. read is called at each collection.
func (m *Metrics) ObserveRuns(read func() []RunsState) error {
	return m.observed([]Instrument{runs}, func(_ context.Context, set func(Instrument, uint64, ...string)) {
		for _, r := range read() {
			set(runs, r.Count, r.Status, r.Reason)
		}
	})
}

const (
	// lookEvery is the least time between two looks at the bus, however often
	// somebody collects.
	lookEvery = 5 * time.Second
	// lookTime bounds a look.
	lookTime = 2 * time.Second
)

// ObserveBus shows how the bus stands, at most every 5 s anew. While it cannot be
// asked nothing is shown: old figures would look like new ones.
func (m *Metrics) ObserveBus(read func(ctx context.Context) (BusState, error)) error {
	var mu sync.Mutex
	var last BusState
	var at time.Time
	return m.observed([]Instrument{pending, ackPending, redelivering, waiting, streamBytes, streamLimit}, func(ctx context.Context, set func(Instrument, uint64, ...string)) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= lookEvery {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
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
