package responses_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const turns = 60

// answer is the whole answer of a turn. Together, six turns have each kind of answer.
func answer(turn int) modeltest.Reply {
	call := func(n int) modeltest.ReplyPart {
		return modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("call_%d_%d", turn, n), Name: "read_file", Arguments: fmt.Sprintf(`{"path": "<%d>"}`, n)}}
	}
	thinking := func(text string, size int) modeltest.ReplyPart {
		return modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: text, Size: size}}
	}
	text := func(phase string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Text: fmt.Sprintf("Turn %d says %s.", turn, phase), Phase: phase}
	}
	r := modeltest.Reply{Usage: &modeltest.Usage{Input: uint64(100 * turn), Output: 50, Cached: uint64(80 * turn), Written: 20, Reasoning: 30}}
	switch turn % 6 {
	case 0:
		r.Parts = []modeltest.ReplyPart{thinking("First.\n\nThen & <so>.", 0), text("commentary"), call(0), call(1)}
	case 1:
		r.Parts = []modeltest.ReplyPart{thinking("", 9000), call(0), thinking("Again.", 100), call(1)}
	case 2:
		r.Parts = []modeltest.ReplyPart{thinking("Done.", 0), text("final_answer")}
	case 3:
		r.Parts = []modeltest.ReplyPart{call(0), call(1), call(2)}
	case 4:
		r.Parts = []modeltest.ReplyPart{text("commentary"), thinking("", 0), thinking("Twice.", 0), text("final_answer")}
	default:
		r.Parts = []modeltest.ReplyPart{{Text: fmt.Sprintf("Turn %d has no phase.", turn)}}
	}
	r.Quirks.OmitOutput = turn%2 == 1
	return r
}

// tries are the replies of a turn: faults of which each is one failed try, then the
// answer.
func tries(turn int) []modeltest.Reply {
	whole := answer(turn)
	failing := func(fault modeltest.Fault, flat bool) modeltest.Reply {
		r := whole
		r.Fault, r.Quirks.FlatErrors = fault, flat
		return r
	}
	switch turn % 10 {
	case 1:
		return []modeltest.Reply{failing(modeltest.FaultCut, false), whole}
	case 3:
		return []modeltest.Reply{failing(modeltest.FaultError, false), failing(modeltest.FaultError, true), whole}
	case 5:
		return []modeltest.Reply{failing(modeltest.FaultFailed, false), failing(modeltest.FaultNoFinish, false), whole}
	case 7:
		return []modeltest.Reply{{Status: 429}, failing(modeltest.FaultDrop, false), whole}
	}
	return []modeltest.Reply{whole}
}

// TestSixtyTurns has a conversation with parallel calls, reasoning, phases, failed
// tries, nudges and messages of the user. The server refuses each request that is not
// valid, reasoning that it did not make, and texts without their phase.
func TestSixtyTurns(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming %t", streaming), func(t *testing.T) {
			var replies []modeltest.Reply
			for turn := range turns {
				replies = append(replies, tries(turn)...)
			}
			s := modeltest.NewServer(t, replies...)
			s.Responses.KeepPhases = true
			converse(t, s, streaming)

			sent := s.Requests()
			if len(sent) != len(replies) {
				t.Fatalf("%d requests, want %d", len(sent), len(replies))
			}
			for i, r := range sent {
				if r.Refused != "" {
					t.Fatalf("request %d was refused: %s", i+1, r.Refused)
				}
				if i == 0 {
					continue
				}
				if before := bytes.TrimSuffix(sent[i-1].Body, []byte("]}")); !bytes.HasPrefix(r.Body, before) {
					t.Fatalf("request %d does not begin with request %d:\n%s\n%s", i+1, i, r.Body, before)
				}
			}
			made := slices.Concat(s.ResponseItems()[:turns-1]...)
			compareItems(t, returned(t, sent[len(sent)-1].Body), made)
		})
	}
}

// converse has the conversation of the turns.
func converse(t *testing.T, s *modeltest.Server, streaming bool) {
	p := provider(t, s)
	req := modeltest.Conversation(streaming)
	req.ShowReasoning, req.CacheKey = true, "run-1"
	blobs := map[string][]byte{}
	req.Blob = func(_ context.Context, digest string) ([]byte, error) { return blobs[digest], nil }
	for turn := range turns {
		req.Turn = uint32(turn + 1)
		var resp *model.Response
		for n := range tries(turn) {
			var err error
			resp, err = p.Complete(t.Context(), req, func(model.Delta) {})
			last := n == len(tries(turn))-1
			if last && err != nil {
				t.Fatalf("turn %d: %v", turn, err)
			}
			if !last && !model.AsError(err).Retryable {
				t.Fatalf("turn %d, try %d: %v, want a retryable error", turn, n, err)
			}
		}
		modeltest.CheckAnswer(t, answer(turn), resp)
		spill(resp.Parts, blobs)
		modeltest.Answer(req, resp, func(c *harnessv1.ToolCall) string { return "result of " + c.GetId() })
		if turn%7 == 0 {
			req.Messages = append(req.Messages, &harnessv1.Message{Id: uint64(len(req.Messages) + 1), Role: harnessv1.Role_ROLE_USER, Content: content.Inline("And then?")})
		}
	}
}

// spill moves large opaque parts to blobs, as the log of a run does.
func spill(parts []*harnessv1.Part, blobs map[string][]byte) {
	for _, p := range parts {
		if data := p.GetOpaque().GetInline(); len(data) > 8<<10 {
			digest := content.Digest(data)
			blobs[digest] = data
			p.Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{Blob: &harnessv1.BlobRef{Digest: digest}}}
		}
	}
}

// returned returns the items of a request that a response had.
func returned(t *testing.T, body []byte) []json.RawMessage {
	t.Helper()
	var items []json.RawMessage
	for _, raw := range input(t, body) {
		var i item
		if err := json.Unmarshal(raw, &i); err != nil {
			t.Fatal(err)
		}
		if i.Role != "user" && i.Type != "function_call_output" {
			items = append(items, raw)
		}
	}
	return items
}

// input returns the items of a request.
func input(t *testing.T, body []byte) []json.RawMessage {
	t.Helper()
	var r struct {
		Input []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r.Input
}

// item has the members of items that come back.
type item struct {
	Type      string
	Role      string
	Phase     string
	Content   []struct{ Type, Text string }
	CallID    string `json:"call_id"`
	Name      string
	Arguments string
}

// compareItems compares the items of a request with those that the server made:
// reasoning byte for byte, others by what comes back of them.
func compareItems(t *testing.T, got, made []json.RawMessage) {
	t.Helper()
	if len(got) != len(made) {
		t.Fatalf("%d items came back, want %d", len(got), len(made))
	}
	opaque := 0
	for n := range made {
		var have, want item
		for raw, into := range map[*json.RawMessage]*item{&got[n]: &have, &made[n]: &want} {
			if err := json.Unmarshal(*raw, into); err != nil {
				t.Fatal(err)
			}
		}
		if want.Type == "reasoning" {
			opaque++
			if !bytes.Equal(got[n], made[n]) {
				t.Fatalf("item %d is\n%s\nwant\n%s", n, got[n], made[n])
			}
		}
		if fmt.Sprintf("%+v", have) != fmt.Sprintf("%+v", want) {
			t.Fatalf("item %d is %+v, want %+v", n, have, want)
		}
		if want.Type != "reasoning" && bytes.Contains(got[n], []byte(`"id":`)) {
			t.Fatalf("item %d has an id: %s", n, got[n])
		}
	}
	if opaque < turns/2 {
		t.Errorf("%d items of reasoning, want more", opaque)
	}
}
