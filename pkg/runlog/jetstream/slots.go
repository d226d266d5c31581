package jetstream

import "sync"

// slots bounds the messages that a consumer has in work, over all partitions. Requested
// messages count too, so that a worker does not request more than it can start: a
// message would wait here while another worker is idle.
type slots struct {
	mu      sync.Mutex
	size    int
	working int
	asked   int
	freed   []chan<- struct{} // receive a value when a slot may be free
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

// acquire takes a slot for a message that has arrived. It returns false if all are in
// work.
func (s *slots) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working >= s.size {
		return false
	}
	s.working++
	return true
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
