package turnserver

import (
	"context"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// publishDeltas returns a function that publishes the text of one try while the model writes
// it, and after each piece the alerts of the monitor about the text up to there.
func (t *execution) publishDeltas(try uint32) func(model.Delta) {
	var text, reasoning uint64
	monitor := turn.NewMonitor(t.state.Snapshot, t.written)
	return func(d model.Delta) {
		failpoint.Hit(turn.Name, "streaming")
		t.delta(&harnessv1.Delta{
			TurnNumber: t.progress.Number, Attempt: t.progress.Attempts, Try: try,
			Offset: text, Text: d.Text, ReasoningOffset: reasoning, Reasoning: d.Reasoning,
		})
		text += uint64(len(d.Text))
		reasoning += uint64(len(d.Reasoning))
		if monitor == nil {
			return
		}
		for _, alert := range monitor.Add(d.Text) {
			t.delta(&harnessv1.Delta{
				TurnNumber: t.progress.Number, Attempt: t.progress.Attempts, Try: try,
				Offset: text, ReasoningOffset: reasoning, Alert: alert,
			})
		}
	}
}

// written returns the agent's text of the attempt before this turn, as much of it as the
// monitor reads.
func (w *Server) written(ctx context.Context, run runlog.Run, s runstate.SharedFields, c *conversation.Conversation) (string, error) {
	var written strings.Builder
	for _, part := range turn.Written(s, c) {
		text, err := w.text(ctx, run, part)
		if err != nil {
			return "", err
		}
		if written.WriteString(text.GetInline()); written.Len() >= quality.MonitorBytes {
			break
		}
	}
	return written.String(), nil
}
