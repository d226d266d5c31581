package executor

import (
	"fmt"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestSpanOfAPass: a pass is a span below the execution, as long as it took.
func TestSpanOfAPass(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	ctx, execution := provider.Tracer("test").Start(t.Context(), "compaction")
	pass := &harnessv1.CompactionCompleted{
		TokensBefore: 900, TokensAfter: 500, FreedTokens: 400, Duration: durationpb.New(3 * time.Second), Strategies: []string{"clear", "drop"}, Pass: 2, Error: "too long",
	}
	outcome := &harnessv1.Outcome{
		Step: &harnessv1.Step{Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
		Events: []*harnessv1.Event{
			{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: &harnessv1.CompactionStarted{Level: "soft"}}},
			{Event: &harnessv1.Event_CompactionCompleted{CompactionCompleted: pass}},
		},
	}
	run := runlog.Run{Namespace: "n", ID: "r"}
	describe(ctx, run, execution, outcome, nil)
	outcome.Events = outcome.Events[:1] // a summary was requested
	describe(ctx, run, execution, outcome, nil)
	ended := recorder.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans", len(ended))
	}
	span := ended[0]
	got := map[string]string{}
	for _, a := range span.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"harness.run.id": "r", "harness.namespace": "n", "gen_ai.conversation.id": "r", "harness.compaction.tokens_before": "900", "harness.compaction.tokens_after": "500",
		"harness.compaction.tokens_freed": "400", "harness.compaction.strategies": `["clear","drop"]`, "harness.compaction.level": "soft", "harness.compaction.pass": "2",
		"harness.compaction.error": "too long",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if span.Name() != "compact" || span.Parent().SpanID() != execution.SpanContext().SpanID() || span.EndTime().Sub(span.StartTime()) != 3*time.Second {
		t.Errorf("%s below %s took %s", span.Name(), span.Parent().SpanID(), span.EndTime().Sub(span.StartTime()))
	}
}
