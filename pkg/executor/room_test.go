package executor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// queue enters steps into a room, each in a goroutine, and records when they are in.
type queue struct {
	t      *testing.T
	room   *Room
	in     []string
	leaves map[string]func()
}

func (q *queue) enter(name string, bytes uint64) {
	q.t.Helper()
	go func() {
		leave, err := q.room.enter(q.t.Context(), bytes)
		if err != nil {
			name += ": " + err.Error()
		}
		q.in = append(q.in, name)
		q.leaves[name] = leave
	}()
	synctest.Wait()
}

func (q *queue) leave(name string) {
	q.leaves[name]()
	synctest.Wait()
}

func (q *queue) want(names ...string) {
	q.t.Helper()
	if !slices.Equal(q.in, names) {
		q.t.Errorf("in the room are %q, want %q", q.in, names)
	}
	q.in = nil
}

// TestRoomIsBoundInBytes: steps are in work at the same time as far as their bytes fit,
// in the order in which they came; one that never fits is alone.
func TestRoomIsBoundInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, room: NewRoom(100), leaves: map[string]func(){}}
		q.enter("a", 40)
		q.enter("b", 40)
		q.want("a", "b")
		q.enter("huge", 1<<63)
		q.enter("small", 1) // would fit, but then the huge one might never get in
		q.want()
		q.leave("a")
		q.want()
		q.leave("b")
		q.want("huge")
		q.leave("huge")
		q.want("small")
		q.leave("small")
	})
}

// TestWeight: a step weighs its conversation and the messages of its journal, or what a
// compaction plan leaves of these.
func TestWeight(t *testing.T) {
	budget := &harnessv1.TokenBudget{UsedTokens: 10, ReportedTokens: 8, UnreportedBytes: 5, MediaBytes: 7}
	for name, c := range map[string]struct {
		snapshot *harnessv1.Snapshot
		bytes    uint64
	}{
		"without messages":   {&harnessv1.Snapshot{}, 0},
		"a conversation":     {&harnessv1.Snapshot{ConversationBytes: 1000, TokenBudget: budget}, 1000 + 7},
		"of an older worker": {&harnessv1.Snapshot{TokenBudget: budget}, 4*8 + 5 + 7},
		"compacted": {
			&harnessv1.Snapshot{ConversationBytes: 1000, TokenBudget: budget, CompactionPlan: &harnessv1.CompactionPlan{}},
			4*10 + 5 + 7,
		},
		"compacted, and short": {
			&harnessv1.Snapshot{ConversationBytes: 9, TokenBudget: budget, CompactionPlan: &harnessv1.CompactionPlan{}},
			9 + 7,
		},
	} {
		if got, want := weight(c.snapshot, 2), stepBytes+conversationFactor*(c.bytes+2); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestStepsEnterTheRoom: a loop weighs the conversations of its steps, and a worker that
// stops puts back those that wait.
func TestStepsEnterTheRoom(t *testing.T) {
	one, other := newBed(t), newBedWith(t, 0)
	large := func(b *bed) runlog.Entry {
		step := stepTo("turn")
		step.Snapshot.ConversationBytes = 10 << 20
		return b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
	}
	first, second := large(one), large(other)
	room := NewRoom(50 << 20)
	began, finish := make(chan struct{}), make(chan struct{})
	works := loopOf(Config{Log: one.log, Room: room}, executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		close(began)
		<-finish
		return passOn(task), nil
	}})
	ended := make(chan *testDelivery)
	go func() { ended <- one.takeIn(t.Context(), works, first, 1) }()
	<-began
	d := &testDelivery{entry: second}
	stop := make(chan func(), 1)
	received := d.received()
	received.onStop = func(f func()) func() bool { stop <- f; return func() bool { return true } }
	waits := loopOf(Config{Log: other.log, Room: room}, executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		t.Error("a step without room was executed")
		return nil, errors.New("executed")
	}})
	put := make(chan struct{})
	go func() {
		defer close(put)
		waits.handle(t.Context(), received)
	}()
	(<-stop)()
	<-put
	if d.calls() != "[nak 0s]" {
		t.Errorf("the step that waits said %s", d.calls())
	}
	close(finish)
	if d := <-ended; d.calls() != acked {
		t.Errorf("the step in work said %s", d.calls())
	}
	if _, d := other.take(t.Context(), executorFunc{"turn", passesOn}, second, 1); d.calls() != acked {
		t.Errorf("afterwards: said %s", d.calls())
	}
}

// TestWaitingStepLeavesTheRoom: a step that waits for a change has no room, and has it again
// afterwards.
func TestWaitingStepLeavesTheRoom(t *testing.T) {
	const size = 3 * stepBytes // so that a step that did not leave does not wait for itself
	for name, others := range map[string]int{"without a slot": 0, "in its slot": maxWaiting} {
		b := newBedWith(t, 0)
		room := NewRoom(size)
		d := &testDelivery{entry: b.step("compaction")}
		decisions := 0
		l := loopOf(Config{Log: b.log, Room: room, Poll: time.Millisecond}, &Pure{
			ExecutorName: "compaction",
			Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
				if room.free.TryAcquire(size) {
					t.Errorf("%s: decision %d has no room", name, decisions)
				}
				if decisions++; decisions == 3 {
					return outcomeOf(in), nil
				}
				return waitFor(&harnessv1.Wait{}), nil
			},
		})
		l.waiting = others
		d.onWait = func() {
			if !room.free.TryAcquire(size) {
				t.Errorf("%s: it waits in the room", name)
				return
			}
			room.free.Release(size)
		}
		l.handle(t.Context(), d.received())
		l.stopPokes()
		if !room.free.TryAcquire(size) || decisions != 3 {
			t.Errorf("%s: after %d decisions the room is not free", name, decisions)
		}
	}
}

// afterMessages returns the snapshot after a step that is changed first, whose journal appends the message of 10 bytes and
// whose outcome that of 100.
func afterMessages(t *testing.T, message func(bytes uint64) []*harnessv1.Message, change func(*harnessv1.Snapshot)) *harnessv1.Snapshot {
	t.Helper()
	b := newBedWith(t, 0)
	step := stepTo("turn")
	change(step.Snapshot)
	e := b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
	b.take(t.Context(), executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		if err := task.AppendJournal(ctx, claimed(1), message(10), nil); err != nil {
			return nil, err
		}
		o := passOn(task)
		o.Appended = message(100)
		return o, nil
	}}, e, 1)
	records := b.tail(1)
	return records[len(records)-1].GetStep().GetSnapshot()
}

// TestStepCarriesTheBytesOfItsAttachments: those of the step, the journal and the outcome.
func TestStepCarriesTheBytesOfItsAttachments(t *testing.T) {
	message := func(n uint64) []*harnessv1.Message {
		file := &harnessv1.Media{Type: "image/png", Blob: &harnessv1.BlobRef{Size: n}}
		return []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Parts: []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: file}}}}}
	}
	if got := afterMessages(t, message, func(s *harnessv1.Snapshot) { s.AttachmentBytes = 1000 }).GetAttachmentBytes(); got != 1110 {
		t.Errorf("%d bytes, want 1110", got)
	}
}

// TestStepCarriesTheBytesOfItsConversation: they are those of the step, the journal and
// the outcome; of a step of an older program they are estimated.
func TestStepCarriesTheBytesOfItsConversation(t *testing.T) {
	message := func(n uint64) []*harnessv1.Message {
		return []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Size: n}}}}}
	}
	for name, c := range map[string]struct {
		before *harnessv1.Snapshot
		want   uint64
	}{
		"of this program": {&harnessv1.Snapshot{ConversationBytes: 1000, TokenBudget: &harnessv1.TokenBudget{ReportedTokens: 9}}, 1110},
		"of an older one": {&harnessv1.Snapshot{TokenBudget: &harnessv1.TokenBudget{ReportedTokens: 10, UnreportedBytes: 5}}, 155},
	} {
		got := afterMessages(t, message, func(s *harnessv1.Snapshot) {
			s.ConversationBytes, s.TokenBudget = c.before.GetConversationBytes(), c.before.GetTokenBudget()
		}).GetConversationBytes()
		if got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
