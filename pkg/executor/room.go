package executor

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// stepBytes is about what a step needs in memory without its conversation.
	stepBytes = 512 << 10
	// conversationFactor is how many times a step in work needs the bytes of its
	// conversation: as messages, with the contents that are stored elsewhere, and as the
	// request to a model.
	conversationFactor = 3
	// tokenBytes is about the length of a token.
	tokenBytes = 4
)

// Room is the memory that the steps in work in a process may need at the same time. Steps
// enter in the order in which they ask, so a large one waits only for those before it. A
// step that needs more than the whole room is alone in it.
type Room struct {
	size uint64
	free *semaphore.Weighted
}

// NewRoom returns a room of size bytes.
func NewRoom(size uint64) *Room {
	size = max(min(size, math.MaxInt64), 1)
	return &Room{size: size, free: semaphore.NewWeighted(int64(size))}
}

// enter waits until there is room for bytes. leave frees it. The error is the cause of the
// end of ctx.
func (r *Room) enter(ctx context.Context, bytes uint64) (leave func(), err error) {
	n := int64(min(bytes, r.size)) //nolint:gosec // at most math.MaxInt64
	if err := r.free.Acquire(ctx, n); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { r.free.Release(n) }, nil
}

// enterRoom waits until the process has room for the task. The task has none before.
func (t *Task) enterRoom(ctx context.Context) error {
	if t.cfg.Room == nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer t.delivery.onStop(func() { cancel(errStopping) })()
	t.mu.Lock()
	bytes := weight(t.Entry.Record.GetStep().GetSnapshot(), t.bytes)
	t.mu.Unlock()
	leave, err := t.cfg.Room.enter(ctx, bytes)
	t.leave = leave
	return err
}

// leaveRoom frees the room of the task, if it has any.
func (t *Task) leaveRoom() {
	if t.leave != nil {
		t.leave()
		t.leave = nil
	}
}

// weight returns about how many bytes of memory the work on a step needs whose journal has
// messages of some bytes. A compaction plan leaves out a part of the conversation, and what
// remains is known by its tokens only.
func weight(s *harnessv1.Snapshot, journal uint64) uint64 {
	b := s.GetTokenBudget()
	bytes := conversationBytes(s)
	if s.GetCompactionPlan() != nil {
		bytes = min(bytes, tokenBytes*uint64(b.GetUsedTokens())+b.GetUnreportedBytes())
	}
	return stepBytes + conversationFactor*(bytes+b.GetMediaBytes()+journal)
}

// conversationBytes returns the bytes of the conversation at a step, about these if an
// older program has committed it.
func conversationBytes(s *harnessv1.Snapshot) uint64 {
	if bytes := s.GetConversationBytes(); bytes > 0 {
		return bytes
	}
	b := s.GetTokenBudget()
	return tokenBytes*uint64(b.GetReportedTokens()) + b.GetUnreportedBytes()
}
