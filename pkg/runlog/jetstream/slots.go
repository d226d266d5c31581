package jetstream

import (
	"context"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// slots bounds the messages that a consumer has in work, over all partitions. Requested
// messages count too, so that a worker does not request more than it can start: a
// message would wait here while another worker is idle.
type slots struct {
	mu      sync.Mutex
	size    int
	working int
	asked   int
	freed   []chan<- struct{} // receive a value when a slot may be free
	// resumed contains a value for each message that continues after a wait. Senders
	// that block continue in order.
	resumed chan struct{}
}

func newSlots(size int) *slots {
	size = max(size, 1)
	return &slots{size: size, resumed: make(chan struct{}, runlog.Resumed(size))}
}

// slot is the slot of one message. Only the message's handler uses it.
type slot struct {
	of   *slots
	free func() // nil while the message has none
}

// end frees the slot, if there is one.
func (s *slot) end() {
	if s.free != nil {
		s.free()
		s.free = nil
	}
}

// wait calls wait without a slot and then takes one of those for messages that have
// waited.
func (s *slot) wait(ctx context.Context, wait func()) error {
	s.end()
	wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s.of.resumed <- struct{}{}:
		s.free = func() { <-s.of.resumed }
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reserve takes up to n slots for a request. A partition without an open request gets
// one as long as not all messages are in work. Otherwise a few slots could all be
// reserved for partitions without messages.
func (s *slots) reserve(n int, none bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.size-s.working-s.asked)
	if n <= 0 && none && s.working < s.size {
		n = 1
	}
	n = max(n, 0)
	s.asked += n
	return n
}

// release frees slots of requests that end without a message.
func (s *slots) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked -= n
	s.notify()
}

// acquire takes a slot for a message that has arrived. ok is false if all are in work.
func (s *slots) acquire() (taken *slot, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working >= s.size {
		return nil, false
	}
	s.working++
	return &slot{of: s, free: s.end}, true
}

// end frees a slot.
func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working--
	s.notify()
}

// full reports whether all slots are in work.
func (s *slots) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working >= s.size
}

func (s *slots) notify() {
	for _, c := range s.freed {
		signal(c)
	}
}
