package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// readMessages reads messages of the run for a call: from the conversation and the
// blobs of this run alone, and as much as the model is shown of a result.
func (t *execution) readMessages(ctx context.Context, a turn.ReadMessages) turn.Event {
	s := t.state.Snapshot
	reader := &readback.Reader{
		Text: func(ctx context.Context, c *harnessv1.Content) (string, error) {
			text, err := t.server.text(ctx, t.run, c)
			return text.GetInline(), err
		},
		Count:  func(text string) int { return tokens.Count(s.GetModel(), text) },
		Tokens: int(runstate.ShownTokens(s.GetConfig())),
	}
	result, err := reader.Read(ctx, a.Messages, a.Request)
	if err != nil {
		return turn.Failed{Err: err}
	}
	return turn.MessagesRead{Result: result}
}
