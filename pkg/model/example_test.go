package model_test

import (
	"context"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// A Provider makes one try; the caller retries as Next decides.
func Example() {
	s, err := script.Parse([]byte(`turns:
  - {error: {status: 429, retry_after: 0}}
  - {text: Hello.}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var provider model.Provider = script.NewProvider(s)
	request := &model.Request{Model: "demo", Messages: []*harnessv1.Message{{
		Id: 1, Role: harnessv1.Role_ROLE_USER,
		Content: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: "Say hello."}},
	}}}
	for try := uint32(1); ; try++ {
		response, err := provider.Complete(context.Background(), request, nil)
		if err == nil {
			fmt.Println(response.Text, response.FinishReason)
			return
		}
		wait, again := model.Next(&harnessv1.ModelConfig{}, try, model.AsError(err), 0.5)
		fmt.Println(err, wait, again)
		if !again {
			return
		}
		time.Sleep(wait)
	}
	// Output:
	// the script answered 429 Too Many Requests 0s true
	// Hello. stop
}
