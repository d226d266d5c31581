//go:build !linux

package command

import (
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
)

// network is that of a run's commands. This system has none.
type network struct{}

type networks struct{}

func (*networks) share(string, process.Begun) error { return nil }

func (*networks) unshare(string) {}

func (*networks) of(string) *network { return nil }

func (*network) joins(*process.Command, confinement.Confinement) {}

func (*network) close() {}
