package executor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// verdictStep returns the step that ends a judged segment.
func verdictStep() *harnessv1.Step {
	return &harnessv1.Step{From: workflow.StopDecision, To: runlog.End, Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{
		Quality: &harnessv1.QualityVerdict{
			Kind: "synthesis", Level: "COMPLEX", Attempts: 3, Delivered: 2, Iterations: 1, Combined: 0.75, VerifierScore: proto.Float64(0.5), ContractPassed: true, Degraded: true,
			Scores: []*harnessv1.QualityScored{{Type: "rqs", Score: 71}, {Type: "doc_qs", Score: 40}}, Usage: &harnessv1.Usage{InputTokens: 900, OutputTokens: 40, CostMicroUsd: 12},
			Variety: &harnessv1.AnswerFigures{Words: 250, Distinct: 0.25, Bits: 5.5}, Repetitive: true, IssueBits: proto.Float64(1.5), Duration: durationpb.New(90 * time.Second),
		},
	}}}
}

// TestSpanOfASegment: the verdict on a segment is a span below the stop decision, as long as the
// segment took, and a line of the log. A step without a verdict has neither.
func TestSpanOfASegment(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	ctx, execution := provider.Tracer("test").Start(t.Context(), "stopdecision")
	unjudged, closing, other := verdictStep(), verdictStep(), verdictStep()
	unjudged.GetResult().Quality = nil
	closing.GetSnapshot().ExpireTime = timestamppb.Now()
	other.From = workflow.Repair
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("run", "r", "namespace", "n")
	for _, step := range []*harnessv1.Step{verdictStep(), unjudged, closing, other} {
		describe(ctx, runlog.Run{Namespace: "n", ID: "r"}, execution, &harnessv1.Outcome{Step: step}, nil)
		logSegment(ctx, logger, step)
	}
	ended := recorder.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans", len(ended))
	}
	span, got := ended[0], map[string]string{}
	for _, a := range span.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"harness.run.id": "r", "harness.namespace": "n", "gen_ai.conversation.id": "r", "harness.quality.kind": "synthesis", "harness.quality.level": "complex",
		"harness.quality.attempts": "3", "harness.quality.delivered": "2", "harness.quality.iterations": "1", "harness.quality.combined": "0.75",
		"harness.quality.verifier_score": "0.5", "harness.quality.contract_passed": "true", "harness.quality.degraded": "true",
		"harness.quality.scores": `["rqs=71","doc_qs=40"]`, "harness.quality.duration_ms": "90000", "harness.quality.answer.words": "250",
		"harness.quality.answer.distinct": "0.25", "harness.quality.answer.bits": "5.5", "harness.quality.answer.repetitive": "true", "harness.quality.issue_bits": "1.5",
		"gen_ai.usage.input_tokens": "900", "gen_ai.usage.output_tokens": "40", "harness.cost_micro_usd": "12",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if span.Name() != "judge" || span.Parent().SpanID() != execution.SpanContext().SpanID() || span.EndTime().Sub(span.StartTime()) != 90*time.Second {
		t.Errorf("%s below %s took %s", span.Name(), span.Parent().SpanID(), span.EndTime().Sub(span.StartTime()))
	}
	line := `level=INFO msg="segment judged" run=r namespace=n kind=synthesis level=complex attempts=3 delivered=2 iterations=1 combined=0.75 contract_passed=true degraded=true ` +
		`scores="rqs=71 doc_qs=40" input_tokens=900 output_tokens=40 cost_micro_usd=12 duration_ms=90000 words=250 distinct=0.25 answer_bits=5.5 repetitive=true ` +
		"verifier_score=0.5 issue_bits=1.5\n"
	if log.String() != line {
		t.Errorf("got  %swant %s", log.String(), line)
	}
}

// TestCommittedVerdictsAreLogged: the worker that stores the end of a segment logs it, and one
// that is fenced off does not.
func TestCommittedVerdictsAreLogged(t *testing.T) {
	b := newBed(t)
	e := b.step(workflow.StopDecision)
	var log bytes.Buffer
	x := executorFunc{workflow.StopDecision, func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		end, s := verdictStep(), proto.CloneOf(task.Step().GetSnapshot())
		s.Status, s.Phase = harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.Phase_PHASE_DONE
		end.Snapshot = s
		end.PhaseChanges = []*harnessv1.PhaseChange{
			{From: harnessv1.Phase_PHASE_EXECUTING, To: harnessv1.Phase_PHASE_REFLECTING, Input: harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED},
			{From: harnessv1.Phase_PHASE_REFLECTING, To: harnessv1.Phase_PHASE_DONE, Input: harnessv1.PhaseInput_PHASE_INPUT_COMPLETE},
		}
		return &harnessv1.Outcome{Step: end}, nil
	}}
	handle := func() {
		d := &testDelivery{entry: e}
		loopOf(Config{Log: b.log, Now: func() time.Time { return noon }, Logger: slog.New(slog.NewTextHandler(&log, nil))}, x).handle(t.Context(), d.received())
	}
	handle()
	if records := b.tail(e.Header.Version); len(records) != 1 || strings.Count(log.String(), `msg="segment judged"`) != 1 || !strings.Contains(log.String(), " run=r ") {
		t.Errorf("stored %v, logged %s", records, log.String())
	}
	log.Reset()
	handle()
	if strings.Contains(log.String(), "segment judged") {
		t.Errorf("logged again: %s", log.String())
	}
}
