package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// BenchmarkTurn measures the cost of the metrics of a turn with one tool call: four
// steps and their eight records.
func BenchmarkTurn(b *testing.B) {
	provider := meters(b, prometheus.NewRegistry())
	defer func() { _ = provider.Shutdown(context.Background()) }()
	m, err := NewMetrics(provider.Meter("test"))
	if err != nil {
		b.Fatal(err)
	}
	answer := responded(time.Second, 0)
	answer.GetModelResponded().Calls = []*harnessv1.PreparedCall{{Tool: "read_file", Offered: true, Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN}}
	tool := at(0, finished(ms))
	tool.Appended = []*harnessv1.Message{{ToolCallId: "c", ToolName: "read_file"}}
	records := []*harnessv1.Record{step(0), step(0), at(0, claimed(1)), at(0, answer), at(0, &harnessv1.Journal{}), tool, step(0), step(0)}
	b.ReportAllocs()
	for b.Loop() {
		for _, executor := range workflow.Default() {
			m.StepReceived(b.Context(), executor, false, noon, noon)
			m.StepEnded(b.Context(), executor, Committed, ms)
		}
		for _, rec := range records {
			m.appends.record(b.Context(), 0.001, "turn", "stored")
			m.stored(b.Context(), rec)
		}
		m.modelDuration.record(b.Context(), 1, chat, "openai", "m", "")
	}
}
