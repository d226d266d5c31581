//go:build !linux

package toolhostserver

import (
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
)

// network is that of a run's commands. This system has none.
type network struct{}

func (s *Server) shareNetwork(string, process.Begun) {}

func (s *Server) closeNetwork(string) {}

func (s *Server) networkOf(string) *network { return nil }

func (n *network) joins(*process.Command, confinement.Confinement) {}

func (n *network) close() {}
