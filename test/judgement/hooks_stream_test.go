package judgement

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hooksStream is a client that drives a run over its stream and answers its hooks.
type hooksStream struct {
	*live.Run
	stream harnessv1.GatewayService_RunClient
	answer hooksAnswer

	receipts chan *harnessv1.InputReceipt // closed when the stream has ended

	mu    sync.Mutex
	asked []hooksCall
}

// hooksDrive starts a run over a stream. A nil answer closes the client's side immediately:
// no hook gets a verdict.
func hooksDrive(t *testing.T, m live.Model, answer hooksAnswer, edits ...func(*harnessv1.RunSpec)) *hooksStream {
	t.Helper()
	r := live.Prepare(t, m)
	stream, err := live.Gateway(t).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &hooksStream{Run: r, stream: stream, answer: answer, receipts: make(chan *harnessv1.InputReceipt, 64)}
	c.send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(edits...)}}})
	if answer == nil {
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	first, err := stream.Recv()
	if err != nil || first.GetUpdate().GetAttached() == nil {
		t.Fatalf("the stream begins with %v, %v", first, err)
	}
	go c.receive()
	return c
}

func (c *hooksStream) send(req *harnessv1.RunRequest) {
	if err := c.stream.Send(req); err != nil && !errors.Is(err, io.EOF) {
		c.T.Errorf("send: %v", err)
	}
}

func (c *hooksStream) receive() {
	defer close(c.receipts)
	for {
		m, err := c.stream.Recv()
		if err != nil {
			return
		}
		switch u := m.GetUpdate().GetUpdate().(type) {
		case *harnessv1.RunUpdate_Hook:
			c.reply(u.Hook)
		case *harnessv1.RunUpdate_Receipt:
			c.receipts <- u.Receipt
		}
	}
}

func (c *hooksStream) reply(req *harnessv1.HookRequest) {
	h := hooksCall{HookRequest: req}
	if err := json.Unmarshal([]byte(req.GetPayload()), &h.payload); err != nil {
		c.T.Error(err)
	}
	c.mu.Lock()
	c.asked = append(c.asked, h)
	c.mu.Unlock()
	answer := &harnessv1.HookAnswer{IdempotencyKey: req.GetIdempotencyKey()}
	v, err := c.answer(h)
	switch {
	case err != nil:
		answer.Error = err.Error()
	case v == nil:
		answer.Verdict = hooksVerdict(hooksContinue, "")
	default:
		answer.Verdict = v
	}
	c.send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_HookAnswer{HookAnswer: answer}})
}

// first returns the first hook call that the client received.
func (c *hooksStream) first() hooksCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[0]
}
