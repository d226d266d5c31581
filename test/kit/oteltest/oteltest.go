// Package oteltest is a collector in the process of a test: it takes spans by OTLP over
// gRPC, keeps them, and reports whether they make one connected trace.
package oteltest

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a span as it came in. Ids are hexadecimal, empty for none.
type Span struct {
	Service, Instance string // of the process
	Name              string
	Kind              tracev1.Span_SpanKind
	Trace, ID, Parent string
	Links             []Link
	Start, End        time.Time
	Attributes        map[string]any // string, bool, int64, float64 or []string
	Failed            bool
}

// Link is a link of a span.
type Link struct {
	Trace, ID  string
	Attributes map[string]any
}

// Collector is a collector.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string

	mu    sync.Mutex
	spans []Span
}

// Start starts a collector that ends with the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Collector{address: l.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with the server, which reports nothing else
	}()
	tb.Cleanup(func() {
		server.Stop()
		<-done
	})
	return c
}

// Env is the environment of a process that is to send its spans here.
func (c *Collector) Env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
}

// Export takes spans in.
func (c *Collector) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		process := values(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Service: fmt.Sprint(process["service.name"]), Instance: fmt.Sprint(process["service.instance.id"]),
					Name: s.GetName(), Kind: s.GetKind(), Attributes: values(s.GetAttributes()),
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
					Failed: s.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR,
				}
				for _, l := range s.GetLinks() {
					span.Links = append(span.Links, Link{
						Trace: hex.EncodeToString(l.GetTraceId()), ID: hex.EncodeToString(l.GetSpanId()), Attributes: values(l.GetAttributes()),
					})
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func values(list []*commonv1.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonv1.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *commonv1.AnyValue_BoolValue:
			out[kv.GetKey()] = v.BoolValue
		case *commonv1.AnyValue_IntValue:
			out[kv.GetKey()] = v.IntValue
		case *commonv1.AnyValue_DoubleValue:
			out[kv.GetKey()] = v.DoubleValue
		case *commonv1.AnyValue_ArrayValue:
			var all []string
			for _, e := range v.ArrayValue.GetValues() {
				all = append(all, e.GetStringValue())
			}
			out[kv.GetKey()] = all
		}
	}
	return out
}

// Spans are all that came in so far, in the order in which they began.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return all
}

// Loose returns references that lead nowhere: parents and targets of links that are neither
// among them nor known, and ids that came twice. known are TRACE/SPAN of others.
func Loose(spans []Span, known ...string) []string {
	var loose []string
	there := map[string]bool{}
	for _, k := range known {
		there[k] = true
	}
	for _, s := range spans {
		key := s.Trace + "/" + s.ID
		if there[key] {
			loose = append(loose, "two spans have the id of "+s.Name+" "+key)
		}
		there[key] = true
	}
	for _, s := range spans {
		if s.Parent != "" && !there[s.Trace+"/"+s.Parent] {
			loose = append(loose, fmt.Sprintf("%s of %s has a parent that is nowhere: %s", s.Name, s.Service, s.Parent))
		}
		for _, l := range s.Links {
			if !there[l.Trace+"/"+l.ID] {
				loose = append(loose, fmt.Sprintf("%s of %s has a link to nowhere: %s/%s", s.Name, s.Service, l.Trace, l.ID))
			}
		}
	}
	return loose
}

// Tree draws spans as an indented list, children below their parents in the order in
// which they began.
func Tree(spans []Span) string {
	below := map[string][]Span{}
	there := map[string]bool{}
	for _, s := range spans {
		there[s.Trace+"/"+s.ID] = true
	}
	for _, s := range spans {
		key := s.Trace + "/" + s.Parent
		if !there[key] {
			key = ""
		}
		below[key] = append(below[key], s)
	}
	var text strings.Builder
	var draw func(key string, depth int)
	draw = func(key string, depth int) {
		for _, s := range below[key] {
			fmt.Fprintf(&text, "%s%s (%s)\n", strings.Repeat("  ", depth), s.Name, s.Service)
			draw(s.Trace+"/"+s.ID, depth+1)
		}
	}
	draw("", 0)
	return text.String()
}
