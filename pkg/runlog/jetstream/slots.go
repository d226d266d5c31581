package jetstream

import "sync"

// slots bound the messages that a consumer has in work, over all partitions.
// What was asked for counts too, so that a worker does not ask for more than it
// can begin: what came would wait here while another worker is idle.
type slots struct {
	mu      sync.Mutex
	size    int
	working int
	asked   int
	freed   []chan<- struct{} // told when a slot may have come free
}

// reserve takes up to n slots for messages that will be asked for. A partition
// that has asked for none gets one as long as not all are in work: else a few
// slots would all be held for partitions that have nothing to deliver.
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

// release gives back what was asked for and will not come.
func (s *slots) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked -= n
	s.tell()
}

// begin takes a slot for a message that came; false when all are in work.
func (s *slots) begin() bool {
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
	s.tell()
}

// full says that all are in work.
func (s *slots) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working >= s.size
}

func (s *slots) tell() {
	for _, c := range s.freed {
		signal(c)
	}
}
