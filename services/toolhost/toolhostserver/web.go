package toolhostserver

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/webclient"
)

// webClient returns what sends the requests of a call of a web tool; nil for other calls.
func (s *Server) webClient(run string, call *harnessv1.WebCall) *webclient.Client {
	if call == nil {
		return nil
	}
	return &webclient.Client{Call: call, Operator: s.private, Variable: func(name string) (string, bool) {
		return s.servers.Variable(run, call.GetLocal(), name)
	}}
}
