package jetstream

import (
	"context"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// TestRecordNamesTheSpanThatWroteIt checks that each read of a record returns the span
// that wrote it, under a lower-case key: by sequence, in a view, as a delivery and in
// the feed, in this process and in others. A record without a span has none.
func TestRecordNamesTheSpanThatWroteIt(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	writer, js := open(t, e, Config{}, Layout{}), admin(t, e)
	reader := open(t, e, Config{}, Layout{})
	run := runOf(first("r"))
	fed := make(chan string, 2)
	stop, err := reader.Subscribe(t.Context(), run, func(e *runlog.Entry) {
		if e != nil {
			fed <- e.Header.Traceparent
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := reader.Flush(t.Context()); err != nil { // from here on the feed delivers it
		t.Fatal(err)
	}
	ref := runtrace.Ref{Trace: runtrace.TraceID{1}, Span: runtrace.SpanID{2}}
	want := runtrace.Traceparent(ref)
	sequence, err := writer.Append(spans.Under(t.Context(), ref), first("r"))
	if err != nil {
		t.Fatal(err)
	}
	second := &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: 2, PrevSequence: sequence, Schema: runlog.Schema,
		Writer: &harnessv1.Writer{Nonce: 7},
		Body:   &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}},
	}
	silent, err := writer.Append(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Log{"its writer": writer, "another": reader} {
		if got, err := l.Read(t.Context(), run, sequence); err != nil || got.Header.Traceparent != want {
			t.Errorf("read by %s it names %q, %v", name, got.Header.Traceparent, err)
		}
		if view, err := l.View(t.Context(), run, silent); err != nil || view.Step.Header.Traceparent != want || view.Newest.Header.Traceparent != "" {
			t.Errorf("viewed by %s: %q and %q, %v", name, view.Step.Header.Traceparent, view.Newest.Header.Traceparent, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, want := range []string{want, ""} {
		select {
		case got := <-fed:
			if got != want {
				t.Errorf("fed as %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatal("the feed is silent")
		}
	}
	stream, err := js.Stream(ctx, runsStream(0))
	if err != nil {
		t.Fatal(err)
	}
	for sequence, want := range map[uint64]string{sequence: want, silent: ""} {
		m, err := stream.GetMsg(ctx, sequence)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header["traceparent"]; len(got) > 1 || (len(got) == 1) != (want != "") || len(got) == 1 && got[0] != want {
			t.Errorf("stored with traceparent %q, want %q", got, want)
		}
	}
}
