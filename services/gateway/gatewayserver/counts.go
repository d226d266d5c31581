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
