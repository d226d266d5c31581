package gatewayserver

import "github.com/harnessmesh/harnessmesh/services/gateway"

// Counts returns the number of runs by status and reason; nil while the list of runs is
// incomplete.
func (s *Server) Counts() []gateway.Count {
	s.runs.mu.RLock()
	defer s.runs.mu.RUnlock()
	if !s.runs.complete {
		return nil
	}
	return s.runs.index.Counts()
}

// Usage returns the usage of the runs that a caller has started; known is false while the list of runs
// is incomplete.
func (s *Server) Usage(caller string) (usage gateway.Usage, known bool) {
	s.runs.mu.RLock()
	defer s.runs.mu.RUnlock()
	return s.runs.index.Usage(caller), s.runs.complete
}
