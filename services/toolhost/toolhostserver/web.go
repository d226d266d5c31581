package toolhostserver

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/webclient"
)

// webClient returns what sends the requests of a call of a web tool; nil for other calls.
func (s *Server) webClient(run string, call *harnessv1.WebCall) *webclient.Client {
	if call == nil {
		return nil
	}
	return &webclient.Client{Call: call, Operator: s.confiner.private, Variable: func(name string) (string, bool) {
		if call.GetLocal() {
			return s.serverVariable(mcpclient.Run{Key: run}, name)
		}
		return s.givenVariable(run, name)
	}}
}

// givenVariable returns the value of a variable of the client that drives a run. The holder of a
// token gets none of this process: its hosts would receive it.
func (s *Server) givenVariable(run, name string) (string, bool) {
	if s.config.Environment == nil || slices.Contains(s.config.Withheld, name) {
		return "", false
	}
	for _, pair := range s.config.Environment(runName(run)) {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}
