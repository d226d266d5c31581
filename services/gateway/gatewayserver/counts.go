package gatewayserver

import "github.com/harnessmesh/harnessmesh/services/gateway"

// Counts says how many runs stand how; nothing while the list of runs is not
// complete.
func (s *Server) Counts() []gateway.Count {
	s.runs.mu.RLock()
	defer s.runs.mu.RUnlock()
	if !s.runs.complete {
		return nil
	}
	return s.runs.index.Counts()
}
