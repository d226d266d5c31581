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

// watch starts to read the events after the last one that was seen.
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

// textPosition is how much of the model's text was printed. On one stream a gateway
// repeats nothing; a reopened stream may.
type textPosition struct {
	turn, attempt, try uint32
	// end is the offset after the text of that try.
	end uint64
	// old is the position of earlier streams.
	old *textPosition
}

// rejoin is called when a stream starts.
func (s *textPosition) rejoin() {
	before := *s
	if before.old != nil && before.old.compare(&before) > 0 {
		before = *before.old
	}
	before.old = nil
	s.old = &before
}

// add records a piece and reports whether to print it: it does if no earlier stream
// had it or a later try.
func (s *textPosition) add(d *harnessv1.Delta) bool {
	at := textPosition{turn: d.GetTurnNumber(), attempt: d.GetAttempt(), try: d.GetTry(), end: d.GetOffset()}
	if s.old != nil && at.compare(s.old) < 0 {
		return false
	}
	at.end += uint64(len(d.GetText()))
	if at.compare(s) > 0 {
		at.old = s.old
		*s = at
	}
	return true
}

func (s *textPosition) compare(t *textPosition) int {
	return cmp.Or(cmp.Compare(s.turn, t.turn), cmp.Compare(s.attempt, t.attempt), cmp.Compare(s.try, t.try), cmp.Compare(s.end, t.end))
}
