package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// recorded returns a tracer as Start makes it, and its spans.
func recorded(t *testing.T, s sdktrace.Sampler) (trace.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(entrance{s}), sdktrace.WithIDGenerator(ids{}), sdktrace.WithSpanProcessor(recorder))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider.Tracer(spans.Scope), recorder
}

var parent = runtrace.Ref{Trace: runtrace.TraceID{7}, Span: runtrace.SpanID{8}}

func TestSpansAcrossProcessesHaveDerivedIDs(t *testing.T) {
	tracer, recorder := recorded(t, sdktrace.NeverSample()) // it was decided when the run was started
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	state := runtrace.New(parent, "teller", began)
	state.Chapter, state.ChapterVersion, state.PreviousStretchVersion, state.StretchVersion = 1, 5, 1, 5
	under := runtrace.Current(state)
	step := &harnessv1.Step{To: runlog.End, Snapshot: &harnessv1.Snapshot{
		Trace: state, Status: harnessv1.RunStatus_RUN_STATUS_FAILED, StopReason: &harnessv1.StopReason{Kind: "poison"}, Turn: &harnessv1.TurnState{Number: 101},
	}}
	_, ended := runtrace.Next(state, step, 9, began.Add(-time.Second)) // a clock that lags
	spans.End(tracer, runlog.Run{Namespace: "n", ID: "r"}, step, ended)
	got := recorder.Ended()
	if len(got) != 2 {
		t.Fatalf("%d spans", len(got))
	}
	turn, stretch := got[0], got[1]
	if turn.Name() != "turn 101" || turn.SpanContext().SpanID() != trace.SpanID(under.Span) || turn.SpanContext().TraceID() != trace.TraceID(under.Trace) {
		t.Errorf("%s is %v, what was under it hangs on %v", turn.Name(), turn.SpanContext(), under)
	}
	if turn.Parent().SpanID() != stretch.SpanContext().SpanID() || stretch.Parent().IsValid() || len(stretch.Links()) != 1 {
		t.Errorf("%v is below %v, with links %v", turn.Parent(), stretch.Parent(), stretch.Links())
	}
	if stretch.Name() != "invoke_agent teller" || stretch.Status().Code.String() != "Error" || !stretch.StartTime().Equal(began) || stretch.EndTime().Before(began) {
		t.Errorf("%s %v from %v to %v", stretch.Name(), stretch.Status(), stretch.StartTime(), stretch.EndTime())
	}
}

func TestIDsAreRandomByDefault(t *testing.T) {
	a, s := ids{}.NewIDs(t.Context())
	b, _ := ids{}.NewIDs(t.Context())
	if !a.IsValid() || !s.IsValid() || a == b || s == (ids{}).NewSpanID(t.Context(), a) {
		t.Errorf("%v %v %v", a, b, s)
	}
}

func TestTracesStartOnlyAtTheGateway(t *testing.T) {
	tracer, _ := recorded(t, sdktrace.ParentBased(sdktrace.AlwaysSample()))
	for name, want := range map[string]bool{
		spans.StartRun: true, "harness.v1.GatewayService/StartRun": true,
		"harness.v1.ToolHostService/DescribeHost": false, "turn": false,
	} {
		if _, span := tracer.Start(t.Context(), name); span.SpanContext().IsSampled() != want {
			t.Errorf("%s begins a trace: %v", name, !want)
		}
		if _, span := tracer.Start(spans.Under(t.Context(), parent), name); !span.SpanContext().IsSampled() {
			t.Errorf("%s under a span is not recorded", name)
		}
	}
}

func TestReadsHaveNoSpan(t *testing.T) {
	for method, want := range map[string]bool{
		harnessv1.GatewayService_StartRun_FullMethodName: true, harnessv1.GatewayService_SendInput_FullMethodName: true,
		harnessv1.GatewayService_GetRun_FullMethodName: false, harnessv1.GatewayService_ListRuns_FullMethodName: false,
		harnessv1.GatewayService_Run_FullMethodName: false, harnessv1.GatewayService_WatchRun_FullMethodName: false,
		"/grpc.health.v1.Health/Check": false, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": false,
		harnessv1.ToolHostService_ExecuteTool_FullMethodName: true, harnessv1.ToolHostService_DescribeHost_FullMethodName: false,
	} {
		if got := served(&stats.RPCTagInfo{FullMethodName: method}); got != want {
			t.Errorf("%s: %v", method, got)
		}
	}
}

type failingExporter struct{ calls int }

func (f *failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	f.calls++
	return errors.New("no route")
}
func (f *failingExporter) Shutdown(context.Context) error { return nil }

func TestUnavailableCollectorIsLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	f := &failingExporter{}
	p := &patient{next: f, logger: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }, endpoint: "http://c"}
	batch := make([]sdktrace.ReadOnlySpan, 10)
	for range 7 { // over 60 s
		if err := p.ExportSpans(t.Context(), batch); err != nil {
			t.Error(err)
		}
		now = now.Add(10 * time.Second)
	}
	if n := strings.Count(out.String(), "spans are lost"); n != 2 || f.calls != 7 || !strings.Contains(out.String(), "spans=60") {
		t.Errorf("%d lines for %d failures:\n%s", n, f.calls, out.String())
	}
}

func TestLogLinesNameTheirSpan(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(Handler(slog.NewTextHandler(&out, nil))).With("run", "r")
	logger.InfoContext(t.Context(), "without")
	logger.InfoContext(spans.Under(t.Context(), parent), "with")
	lines := strings.Split(out.String(), "\n")
	if strings.Contains(lines[0], "trace_id") {
		t.Error(lines[0])
	}
	if !strings.Contains(lines[1], "run=r trace_id=07000000000000000000000000000000 span_id=0800000000000000") {
		t.Error(lines[1])
	}
}

func TestNoSpansWithoutTracing(t *testing.T) {
	var off *Telemetry
	if off.Tracer() != nil || off.ServerOptions() != nil || off.DialOptions() != nil || off.Shutdown(t.Context()) != nil || off.Content() {
		t.Error("a nil Telemetry does something")
	}
	ctx, span := spans.Start(t.Context(), "chat", trace.SpanKindClient, nil)
	if ctx != t.Context() || span.IsRecording() {
		t.Error("a span is made where none is above it")
	}
	if n := testing.AllocsPerRun(100, func() { spans.Start(t.Context(), "chat", trace.SpanKindClient, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
