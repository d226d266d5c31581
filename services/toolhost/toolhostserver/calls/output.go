package calls

import (
	"context"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// maxOutputWait bounds how long a request for the output of a call waits.
const maxOutputWait = 30 * time.Second

// Output has the newest output of the command of a call. Many goroutines may use it.
type Output struct {
	mu     sync.Mutex
	recent toolhost.Recent
	// grown is closed when there is more output, and replaced.
	grown chan struct{}
}

// NewOutput returns an Output without anything.
func NewOutput() *Output { return &Output{grown: make(chan struct{})} }

// Write appends p; it never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.recent.Write(p)
	close(o.grown)
	o.grown = make(chan struct{})
	return len(p), nil
}

// after returns the output after an offset, and a channel that is closed when more arrives.
func (o *Output) after(offset uint64) (from uint64, text string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from, text = o.recent.After(offset)
	return from, text, o.grown
}

// ReadOutput returns output of the command of a running call, and waits for more if there is none.
func (s *Calls) ReadOutput(ctx context.Context, req *harnessv1.ReadCallOutputRequest) (*harnessv1.ReadCallOutputResponse, error) {
	run, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if err := ledger.CheckName("call_id", req.GetCallId()); err != nil {
		return nil, err
	}
	if w := req.GetWait(); w != nil && (w.CheckValid() != nil || w.AsDuration() < 0 || w.AsDuration() > maxOutputWait) {
		return nil, fault.Invalid("wait", "must be a duration from 0 to %v", maxOutputWait)
	}
	s.mu.Lock()
	c := s.calls[ledger.CallKey(run, req.GetCallId())]
	s.mu.Unlock()
	if c == nil {
		return &harnessv1.ReadCallOutputResponse{Offset: req.GetOffset()}, nil
	}
	timer := time.NewTimer(req.GetWait().AsDuration())
	defer timer.Stop()
	for {
		from, text, grown := c.Output.after(req.GetOffset())
		resp := &harnessv1.ReadCallOutputResponse{Offset: from, Text: text, Running: true}
		if text != "" {
			return resp, nil
		}
		select {
		case <-grown:
		case <-c.done:
			resp.Running = false
			return resp, nil
		case <-timer.C:
			return resp, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
