package node

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

var toolHostRole = &roleSpec{name: workflow.ToolHost, open: openToolHost}

func openToolHost(n *Node, d *dependencies) (*service, error) {
	if err := hideMemory(); err != nil {
		n.cfg.Logger.Warn("commands can read this process's environment", "error", err)
	}
	host, err := toolhostserver.New(toolhostserver.Config{
		Dir: filepath.Join(n.cfg.Data, toolsDir), Sync: n.cfg.Sync != "interval", Logger: n.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	n.closers = append(n.closers, host.Close,
		func(ctx context.Context) error { return drainTools(ctx, host, n.cfg.Drain) })
	n.inside(d.toolHost, &insideToolHost{host: host}, host.LedgerID())
	s := &service{
		register: func(r grpc.ServiceRegistrar) { harnessv1.RegisterToolHostServiceServer(r, host) },
		ledger:   host.LedgerID(),
		aliases:  []string{workflow.ToolHost + "." + host.LedgerID()},
	}
	if place := toolhost.Place(s.ledger); place != "" {
		s.aliases = append(s.aliases, placeRole(place))
	}
	return s, nil
}

// placeRole returns the name under which the tool host of a place is found, whatever
// its ledger.
func placeRole(place string) string { return workflow.ToolHost + ".place." + place }

// drainTools waits up to drain for running calls.
func drainTools(ctx context.Context, host *toolhostserver.Server, drain time.Duration) error {
	if drain <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	_ = host.Drain(ctx) // Close kills what is still running
	return nil
}
