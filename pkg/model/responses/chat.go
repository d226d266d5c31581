package responses

import (
	"encoding/json"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// chatAnswer returns an error if a server has answered with a chat completion, or with a
// chunk of one, whatever the path of the request was; nil if it has not.
func chatAnswer(data []byte) error {
	var c struct {
		Object  wire.String       `json:"object"`
		Choices []json.RawMessage `json:"choices"`
	}
	if wire.Unmarshal(data, &c) != nil || len(c.Choices) == 0 && c.Object != "chat.completion" && c.Object != "chat.completion.chunk" {
		return nil
	}
	return &model.Error{
		RetryAfter: -1, Adjustment: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT,
		Message: "the server answered with a chat completion: it does not speak the Responses API",
	}
}
