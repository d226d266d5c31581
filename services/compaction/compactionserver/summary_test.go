package compactionserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/compaction"
	"github.com/harnessmesh/harnessmesh/services/compaction/compactionserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// fullRun stores a run at blocking pressure that only a summary can relieve, with calls of
// these arguments.
func fullRun(b *steptest.Bed, arguments string) {
	st := step(0, 60_000)
	s := st.GetSnapshot()
	s.Config.Context.Compaction, s.Config.Context.MaxInputTokens = proto.Bool(true), proto.Uint32(4000)
	s.Config.Context.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
	s.Trace = &harnessv1.TraceState{TraceId: []byte("0123456789abcdef"), StretchVersion: 1}
	s.TokenBudget, s.GoalPreview = &harnessv1.TokenBudget{UnreportedBytes: 60_000}, "Fix it."
	goal := user(2, content.Inline("Fix it."))
	goal.Kind = harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT
	messages := []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline("You fix things."), Kept: true}, goal}
	for id := uint64(3); id < 43; id += 2 {
		call := fmt.Sprintf("c%d", id)
		messages = append(messages,
			&harnessv1.Message{Id: id, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(""), TurnNumber: 2, ToolCalls: []*harnessv1.ToolCall{
				{Id: call, Name: "read_file", Arguments: content.Inline(arguments)},
			}},
			&harnessv1.Message{
				Id: id + 1, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call, ToolName: "read_file", Content: content.Inline(strings.Repeat("A long line of a file.\n", 30)),
			})
	}
	first := b.PutJournal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1}}})
	s.MessageCount, s.FirstSequence = uint64(len(messages)), first.Sequence
	b.Put(st, messages...)
}

// nextJob waits for the job of a run and acknowledges it.
func nextJob(b *steptest.Bed) *harnessv1.Job {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	jobs := make(chan *harnessv1.Job, 1)
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		_ = b.Log.ConsumeJobs(ctx, 1, func(_ context.Context, d runlog.JobDelivery) {
			_ = d.Ack()
			jobs <- d.Job()
		})
	}()
	defer func() { cancel(); <-consumed }()
	select {
	case job := <-jobs:
		return job
	case <-b.Context().Done():
		b.Fatal("no job was created")
		return nil
	}
}

// TestRunWaitsForItsSummary: the step states that the run waits, the job has the span as the
// model saw it, and the end of the job continues the run.
func TestRunWaitsForItsSummary(t *testing.T) {
	b := steptest.New(t)
	fullRun(b, `{"path":"a.go"}`)
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	server := compactionserver.New(compactionserver.Config{Log: b.Log, Jobs: b.Log, Inference: func(context.Context) bool { return true }})
	b.Start(func(ctx context.Context, cfg executor.Config) error {
		cfg.Tracer = tracer
		return server.Run(ctx, cfg)
	})
	waiting := b.NextStep()
	jobs := waiting.GetSnapshot().GetCompactionPlan().GetJobs()
	if waiting.GetTo() != compaction.Name || len(jobs) != 1 || jobs[0].GetWaitingSince() == nil {
		t.Fatalf("committed %v", waiting)
	}
	job := nextJob(b)
	data, err := b.Log.Blob(b.Context(), b.Run, job.GetRequest().GetDigest())
	request := &harnessv1.ModelRequest{}
	if err != nil || proto.Unmarshal(data, request) != nil || job.GetKey() != jobs[0].GetKey() || job.GetPurpose() != summary.Purpose || job.GetModel() != model {
		t.Fatalf("the job is %v, %v", job, err)
	}
	if span := recorder.Started()[0].SpanContext(); job.GetTraceparent() != "00-"+span.TraceID().String()+"-"+span.SpanID().String()+"-01" {
		t.Errorf("the job is below %q, the execution of the step is span %s of trace %s", job.GetTraceparent(), span.SpanID(), span.TraceID())
	}
	if text := request.GetMessages()[1].GetContent().GetInline(); !strings.Contains(text, "Fix it.") || !strings.Contains(text, "#4 result of read_file:\nA long line") {
		t.Errorf("the request is %s", text)
	}
	result, err := proto.Marshal(&harnessv1.JobResult{Key: job.GetKey(), Text: `{"facts":[{"text":"Lines are long.","messages":[4]}]}`, Usage: &harnessv1.Usage{InputTokens: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Log.PutBlobAs(b.Context(), b.Run, job.GetFirstSequence(), job.GetKey(), result); err != nil {
		t.Fatal(err)
	}
	got := b.NextStep()
	ref := got.GetSnapshot().GetCompactionPlan().GetSummary()
	if got.GetTo() != "turn" || ref.GetKey() != job.GetKey() || got.GetSnapshot().GetSpent().GetUsage().GetInputTokens() != 7 {
		t.Fatalf("committed %v", got)
	}
	data, err = b.Log.Blob(b.Context(), b.Run, ref.GetSummary().GetDigest())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := summary.Decode(data); err != nil || s.GetFacts()[0].GetText() != "Lines are long." || s.GetThroughMessage() != ref.GetThroughMessage() {
		t.Errorf("the summary is %v, %v", s, err)
	}
}

// TestMessageEndsTheWait: an item of the inbox sends the run to repair, without a turn.
func TestMessageEndsTheWait(t *testing.T) {
	b := steptest.New(t)
	fullRun(b, `{"path":"a.go"}`)
	b.Start(compactionserver.New(compactionserver.Config{Log: b.Log, Jobs: b.Log, Inference: func(context.Context) bool { return true }}).Run)
	b.NextStep()
	b.Interrupt()
	got := b.NextStep()
	if turn := got.GetTurnComplete(); got.GetTo() != "stopdecision" || !turn.GetInterrupted() || len(got.GetSnapshot().GetCompactionPlan().GetJobs()) != 1 {
		t.Errorf("committed %v", got)
	}
}

// TestRequestForASummaryIsCutBetweenCharacters shortens arguments that are no ASCII: a request
// that cannot be encoded would fail the run.
func TestRequestForASummaryIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{strings.Repeat("ж", 800), strings.Repeat("ж", 800) + "x"} {
		b := steptest.New(t)
		fullRun(b, `{"text":"`+text+`"}`)
		stop := b.Start(compactionserver.New(compactionserver.Config{Log: b.Log, Jobs: b.Log, Inference: func(context.Context) bool { return true }}).Run)
		if got := b.Next().GetStep(); len(got.GetSnapshot().GetCompactionPlan().GetJobs()) != 1 {
			t.Errorf("committed %v", got)
		}
		stop()
	}
}

// failingLog is a log whose first append fails.
type failingLog struct {
	executor.Log
	failed bool
}

func (l *failingLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if !l.failed {
		l.failed = true
		return 0, errors.New("refused")
	}
	return l.Log.Append(ctx, rec)
}

// TestWeightsThatWereNotCommittedAreObservedAgain: a plan that depends on weights is stored with
// them, also if a decision before it, which was not committed, has counted the messages.
func TestWeightsThatWereNotCommittedAreObservedAgain(t *testing.T) {
	b := steptest.New(t)
	fullRun(b, `{"path":"a.go"}`)
	server := compactionserver.New(compactionserver.Config{Log: b.Log, Jobs: b.Log, Inference: func(context.Context) bool { return true }})
	b.Start(func(ctx context.Context, cfg executor.Config) error {
		cfg.Log = &failingLog{Log: cfg.Log}
		return server.Run(ctx, cfg)
	})
	if failed := b.Next().GetJournal().GetExecutorFailed(); failed == nil {
		t.Fatal("the first decision was committed")
	}
	got := b.NextStep()
	if weights := runlog.Weights(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: got}}); len(weights) != 1 || len(weights[0].GetTokens()) != 42 {
		t.Errorf("the step has the weights %v", weights)
	}
}
