package responses_test

import (
	"errors"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestAChatCompletionSwitchesTheWire: some servers answer each path with one.
func TestAChatCompletionSwitchesTheWire(t *testing.T) {
	for name, reply := range map[string]modeltest.Reply{
		"whole":  {Body: `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`},
		"stream": {Body: "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\ndata: [DONE]\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"bare":   {Body: "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, reply)
			p, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Complete(t.Context(), modeltest.Conversation(true), nil)
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Adjustment != harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT || failed.Retryable {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
