package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type kind struct {
	Kind string `json:"kind"`
}

// addQuestions adds the tool ask. It appends "asking KIND" at the beginning of a call, and
// "answered KIND ANSWERS" when it continues, so the lines show how often each part ran. Kinds:
//
//	form       a form with a text, a number, a choice and a truth value
//	url        an address to visit
//	both       both
//	rounds     asks N times, with N after a colon, such as rounds:3
//	many       asks 200 things
//	state      has a state of a megabyte
//	garbage    has a form that is no schema; nested: one with an object in it
//	address    names a file to visit
//	sampling   asks for a model instead of a person
//	busy       asks nothing, twice, and ends
//	visit      each other call fails until the user has visited an address, as 2025-11-25 has it
//	during     asks during the call, N times, with N after a colon
//	impatient  asks during the call, waits 100 ms for the answer, and appends "gave up"
func addQuestions(s *mcp.Server, write func(string) error) {
	asks := func(state string, requests mcp.InputRequestMap) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{RequestState: state, InputRequests: requests}, nil, nil
	}
	form := func(message, schema string) *mcp.ElicitParams {
		return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
	}
	whole := form("Where to?", `{"type":"object","required":["city","nights"],"properties":{
		"city":{"type":"string","title":"City","minLength":2},"nights":{"type":"integer","minimum":1,"maximum":30},
		"class":{"type":"string","enum":["first","second"]},"late":{"type":"boolean"}}}`)
	visit := &mcp.ElicitParams{Mode: "url", Message: "Pay here.", URL: "https://pay.example.com/1", ElicitationID: "e1"}
	var visits atomic.Int32
	mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks the user."}, func(ctx context.Context, r *mcp.CallToolRequest, in kind) (*mcp.CallToolResult, any, error) {
		name, number, _ := strings.Cut(in.Kind, ":")
		if len(r.Params.InputResponses) == 0 && r.Params.RequestState == "" {
			if err := write("asking " + in.Kind); err != nil {
				return nil, nil, err
			}
		} else if name != "rounds" && name != "busy" {
			given, err := json.Marshal(r.Params.InputResponses)
			if err != nil {
				return nil, nil, err
			}
			return text("%s after %s", given, r.Params.RequestState), nil, write("answered " + in.Kind + " " + string(given))
		}
		state := "state of " + in.Kind
		switch name {
		case "visit":
			if visits.Add(1)%2 == 1 {
				return nil, nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{visit})
			}
			return text("visited"), nil, nil
		case "during":
			last, _ := strconv.Atoi(number)
			for i := range last {
				if _, err := r.Session.Elicit(ctx, form(fmt.Sprintf("Round %d?", i+1), `{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`)); err != nil {
					return nil, nil, err
				}
			}
			return text("asked %d times", last), nil, write("done " + in.Kind)
		case "impatient":
			bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := r.Session.Elicit(bounded, whole)
			return text("asked in vain: %v", err != nil), nil, write("gave up")
		}
		switch name {
		case "url":
			return asks(state, mcp.InputRequestMap{"pay": visit})
		case "both":
			return asks(state, mcp.InputRequestMap{"pay": visit, "trip": whole})
		case "rounds":
			round, _ := strconv.Atoi(r.Params.RequestState)
			if last, _ := strconv.Atoi(number); round == last {
				return text("asked %d times", round), nil, write("done " + in.Kind)
			}
			return asks(strconv.Itoa(round+1), mcp.InputRequestMap{"more": form(fmt.Sprintf("Round %d?", round+1), `{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`)})
		case "many":
			requests := mcp.InputRequestMap{}
			for i := range 200 {
				requests[strconv.Itoa(i)] = visit
			}
			return asks(state, requests)
		case "state":
			return asks(strings.Repeat("x", 1<<20), mcp.InputRequestMap{"trip": whole})
		case "garbage":
			return asks(state, mcp.InputRequestMap{"trip": form("?", `{"type":"object","properties":{"a":{"type":"thing"}}}`)})
		case "nested":
			return asks(state, mcp.InputRequestMap{"trip": form("?", `{"type":"object","properties":{"a":{"type":"object","properties":{}}}}`)})
		case "address":
			return asks(state, mcp.InputRequestMap{"pay": &mcp.ElicitParams{Mode: "url", Message: "Open this.", URL: "file:///etc/passwd", ElicitationID: "e2"}})
		case "sampling":
			return asks(state, mcp.InputRequestMap{"model": &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}}}) //nolint:staticcheck // older servers send it
		case "busy":
			turn, _ := strconv.Atoi(r.Params.RequestState)
			if turn == 2 {
				return text("at last"), nil, nil
			}
			return asks(strconv.Itoa(turn+1), mcp.InputRequestMap{})
		}
		return asks(state, mcp.InputRequestMap{"trip": whole})
	})
}
