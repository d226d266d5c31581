package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxSets bounds the combinations of labels of one instrument in a process. Further
// values are counted under Other: a client that invents names of models or tools must
// not fill the memory of the collectors.
const maxSets = 400

// Other is the label of values without a label.
const Other = "other"

type values [4]string

// family creates the labels of one instrument, each combination once.
type family struct {
	keys []string

	mu   sync.RWMutex
	sets map[values]metric.MeasurementOption
}

// with returns the labels for values, in the order of the instrument's attributes.
func (f *family) with(list ...string) metric.MeasurementOption {
	var v values
	copy(v[:], list)
	f.mu.RLock()
	set, known := f.sets[v]
	full := len(f.sets) >= maxSets
	f.mu.RUnlock()
	switch {
	case known:
		return set
	case full:
		for i := range f.keys {
			v[i] = Other
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if set, known := f.sets[v]; known {
		return set
	}
	var attributes []attribute.KeyValue
	for i, key := range f.keys {
		if v[i] != "" {
			attributes = append(attributes, attribute.String(key, v[i]))
		}
	}
	set = metric.WithAttributeSet(attribute.NewSet(attributes...))
	if f.sets == nil {
		f.sets = map[values]metric.MeasurementOption{}
	}
	f.sets[v] = set
	return set
}

type histogram struct {
	family
	to metric.Float64Histogram
}

func (h *histogram) create(meter metric.Meter, of instrument) (err error) {
	h.keys = of.Attributes
	h.to, err = meter.Float64Histogram(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description), metric.WithExplicitBucketBoundaries(of.Buckets...))
	return err
}

func (h *histogram) record(ctx context.Context, value float64, labels ...string) {
	h.to.Record(ctx, value, h.with(labels...))
}

type counter struct {
	family
	to metric.Int64Counter
}

func (c *counter) create(meter metric.Meter, of instrument) (err error) {
	c.keys = of.Attributes
	c.to, err = meter.Int64Counter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
	return err
}

// maxAdded bounds a single increment of a counter, so that a nonsensical figure of a
// provider does not make it negative.
const maxAdded = 1 << 40

func (c *counter) add(ctx context.Context, n uint64, labels ...string) {
	c.to.Add(ctx, int64(min(n, maxAdded)), c.with(labels...))
}

type sum struct {
	family
	to metric.Float64Counter
}

func (c *sum) add(ctx context.Context, value float64, labels ...string) {
	c.to.Add(ctx, value, c.with(labels...))
}

type upDown struct {
	family
	to metric.Int64UpDownCounter
}

func (u *upDown) add(ctx context.Context, n int64, labels ...string) {
	u.to.Add(ctx, n, u.with(labels...))
}

type gauge struct {
	family
	to metric.Int64Gauge
}

func (g *gauge) set(ctx context.Context, value int64, labels ...string) {
	g.to.Record(ctx, value, g.with(labels...))
}
