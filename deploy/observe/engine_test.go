package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

var promQL = parser.NewParser(parser.Options{})

// start is the time of the first scrape, step the time between two. The times are
// made up; what is scraped is real.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const every = 15 * time.Second

// samples are the series of a test.
type samples map[string]*series

type series struct {
	labels labels.Labels
	points []chunks.Sample
}

type point struct {
	t int64
	v float64
}

func (p point) T() int64                      { return p.t }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.v }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

func (s samples) add(of labels.Labels, at time.Time, value float64) {
	key := of.String()
	if s[key] == nil {
		s[key] = &series{labels: of}
	}
	s[key].points = append(s[key].points, point{at.UnixMilli(), value})
}

// scraped takes in what a process shows, with the labels that Prometheus adds.
func (s samples) scraped(t *testing.T, text string, at time.Time, job, instance string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		of, err := promQL.ParseMetric(line[:cut])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.add(labels.NewBuilder(of).Set("job", job).Set("instance", instance).Labels(), at, value)
	}
}

// described takes in series as promtool's tests have them: `name{a="b"} 0+1x10`.
func (s samples) described(t *testing.T, list ...string) {
	t.Helper()
	for _, text := range list {
		of, values, err := promQL.ParseSeriesDesc(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for i, v := range values {
			if !v.Omitted {
				s.add(of, start.Add(time.Duration(i)*time.Minute), v.Value)
			}
		}
	}
}

// names are those of all metrics, with the labels that each has and their values.
func (s samples) names() map[string]map[string]map[string]bool {
	all := map[string]map[string]map[string]bool{}
	for _, one := range s {
		name := one.labels.Get("__name__")
		if all[name] == nil {
			all[name] = map[string]map[string]bool{}
		}
		one.labels.Range(func(l labels.Label) {
			if all[name][l.Name] == nil {
				all[name][l.Name] = map[string]bool{}
			}
			all[name][l.Name][l.Value] = true
		})
	}
	return all
}

// Querier makes samples a storage for the engine.
func (s samples) Querier(_, _ int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ samples }

func (q querier) Close() error { return nil }

func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, key := range slices.Sorted(maps.Keys(q.samples)) {
		one := q.samples[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			set.series = append(set.series, storage.NewListSeries(one.labels, one.points))
		}
	}
	slices.SortFunc(set.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return set
}

type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next <= len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// evaluate evaluates an expression from start to until.
func (s samples) evaluate(t *testing.T, expr string, until time.Time, step time.Duration) promql.Matrix {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, Parser: promQL})
	query, err := engine.NewRangeQuery(t.Context(), s, nil, expr, start, until, step)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	t.Cleanup(query.Close)
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return matrix
}

// ask returns the labels of the series of an expression that have a number at a
// scrape.
func (s samples) ask(t *testing.T, expr string, until time.Time) []string {
	t.Helper()
	var found []string
	for _, one := range s.evaluate(t, expr, until, every) {
		if slices.ContainsFunc(one.Floats, func(p promql.FPoint) bool { return !math.IsNaN(p.F) && !math.IsInf(p.F, 0) }) {
			found = append(found, one.Metric.String())
		}
	}
	return found
}

// strangers are the names, labels and values in an expression that no sample has.
// rare are values that a mesh shows only when something is wrong.
func (s samples) strangers(t *testing.T, expr string, rare map[string][]string) []string {
	t.Helper()
	parsed, err := promQL.ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	names := s.names()
	var strange []string
	everywhere := map[string]bool{} // labels of all metrics in the expression
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		known := names[selector.Name]
		if known == nil {
			strange = append(strange, "metric "+selector.Name)
		}
		for label := range known {
			everywhere[label] = true
		}
		for _, m := range selector.LabelMatchers {
			switch {
			case m.Name == "__name__" || known == nil:
			case known[m.Name] == nil:
				strange = append(strange, fmt.Sprintf("label %s of %s", m.Name, selector.Name))
			case m.Type == labels.MatchEqual && !known[m.Name][m.Value] && !slices.Contains(rare[m.Name], m.Value):
				strange = append(strange, fmt.Sprintf("%s=%q of %s", m.Name, m.Value, selector.Name))
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		var by []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = n.VectorMatching.MatchingLabels
			}
		}
		for _, label := range by {
			if !everywhere[label] && len(everywhere) > 0 {
				strange = append(strange, "label "+label)
			}
		}
		return nil
	})
	slices.SortFunc(strange, cmp.Compare)
	return slices.Compact(strange)
}

// fires reports whether an alert would fire: whether its expression is true for the
// duration without a gap, evaluated each minute until the last sample.
func (s samples) fires(t *testing.T, expr string, hold time.Duration) bool {
	t.Helper()
	last := start
	for _, one := range s {
		if end := time.UnixMilli(one.points[len(one.points)-1].T()); end.After(last) {
			last = end
		}
	}
	for _, one := range s.evaluate(t, expr, last, time.Minute) {
		var since, before int64
		for _, p := range one.Floats {
			if p.T-before > time.Minute.Milliseconds() {
				since = p.T
			}
			if before = p.T; p.T-since >= hold.Milliseconds() {
				return true
			}
		}
	}
	return false
}
