package follow

import (
	"cmp"
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// stream is an open watch.
type stream struct {
	updates chan *harnessv1.RunUpdate
	// err is why it ended; set before updates is closed.
	err    error
	cancel context.CancelFunc
}

// watch starts to read the events after the last one that was seen, always of the whole tree:
// answers are accepted in the runs below, too.
func (f *follower) watch(ctx context.Context) *stream {
	f.text.rejoin()
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{updates: make(chan *harnessv1.RunUpdate), cancel: cancel}
	after := f.pos.version
	if f.pos.index != 1<<30 && after > 0 {
		after-- // the rest of that version may be missing
	}
	request := &harnessv1.WatchRunRequest{
		Namespace: f.Namespace, RunId: f.Run, AfterVersion: after,
		Until: harnessv1.WatchUntil_WATCH_UNTIL_END, NoDeltas: f.NoDeltas,
	}
	if f.offset != "" {
		request.AfterVersion, request.After = 0, f.offset
	}
	if f.Stored {
		request.Until = harnessv1.WatchUntil_WATCH_UNTIL_NOW
	}
	go func() {
		defer close(s.updates)
		var watch harnessv1.GatewayService_WatchRunClient
		if watch, s.err = f.Client.WatchRun(ctx, request); s.err != nil {
			return
		}
		for {
			var answer *harnessv1.WatchRunResponse
			if answer, s.err = watch.Recv(); s.err != nil {
				return
			}
			select {
			case s.updates <- answer.GetUpdate():
			case <-ctx.Done():
				s.err = ctx.Err()
				return
			}
		}
	}()
	return s
}

// stop ends the stream and waits for its reader; more than once is fine.
func (s *stream) stop() {
	s.cancel()
	for range s.updates {
	}
}

// textPosition is how much of the model's text and reasoning was printed. On one stream
// a gateway repeats nothing; a reopened stream may.
type textPosition struct {
	turn, attempt, try uint32
	// text and reasoning are the offsets after those of that try.
	text, reasoning uint64
	// old is the position of earlier streams.
	old *textPosition
}

// rejoin is called when a stream starts.
func (s *textPosition) rejoin() {
	before := *s
	if old := before.old; old != nil {
		switch c := old.compare(&before); {
		case c > 0:
			before = *old
		case c == 0:
			before.text, before.reasoning = max(before.text, old.text), max(before.reasoning, old.reasoning)
		}
	}
	before.old = nil
	s.old = &before
}

// add records a piece and reports whether to print it: it does if no earlier stream
// had it or a later try.
func (s *textPosition) add(d *harnessv1.Delta) bool {
	at := textPosition{turn: d.GetTurnNumber(), attempt: d.GetAttempt(), try: d.GetTry()}
	if s.old != nil {
		if c := at.compare(s.old); c < 0 || c == 0 && !s.old.lacks(d) {
			return false
		}
	}
	if c := at.compare(s); c > 0 {
		at.old = s.old
		*s = at
	} else if c < 0 {
		return true
	}
	if text := d.GetText(); text != "" {
		s.text = max(s.text, d.GetOffset()+uint64(len(text)))
	}
	if text := d.GetReasoning(); text != "" {
		s.reasoning = max(s.reasoning, d.GetReasoningOffset()+uint64(len(text)))
	}
	return true
}

// lacks reports whether d has a piece that follows the printed text of its try, or is an
// alert: the gateway sends each once.
func (s *textPosition) lacks(d *harnessv1.Delta) bool {
	return d.GetAlert() != nil || d.GetText() != "" && d.GetOffset() >= s.text || d.GetReasoning() != "" && d.GetReasoningOffset() >= s.reasoning
}

// compare compares the tries of two positions.
func (s *textPosition) compare(t *textPosition) int {
	return cmp.Or(cmp.Compare(s.turn, t.turn), cmp.Compare(s.attempt, t.attempt), cmp.Compare(s.try, t.try))
}
