package mcp

import (
	"os"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
)

// Variable returns the value of a variable that the settings of a run's web tools name, by the
// rules for those of servers. local reports that a local person drives the run.
func (s *Servers) Variable(run string, local bool, name string) (string, bool) {
	return s.variable(mcpclient.Run{Key: run, Local: local}, name)
}

// variable returns the value of a variable that the settings of a server or of web tools
// name: that of the client that drives the run, else, for a local person, that of this process.
// The holder of a token gets none of this process: the servers that it names would receive it.
func (s *Servers) variable(run mcpclient.Run, name string) (string, bool) {
	if slices.Contains(s.config.Withheld, name) {
		return "", false
	}
	environ := s.config.Environ(run.Key)
	if environ == nil && run.Local {
		environ = os.Environ()
	}
	return lookUp(environ, name)
}

// lookUp returns the value of a variable among NAME=VALUE.
func lookUp(environ []string, name string) (string, bool) {
	for _, pair := range environ {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}
