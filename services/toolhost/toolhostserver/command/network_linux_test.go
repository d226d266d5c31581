package command

import (
	"context"
	"io"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
)

// TestTheNetworkOfARunIsSharedUntilItIsForgotten: commands of the run join it, others do not.
func TestTheNetworkOfARunIsSharedUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	c, dir := newCommands(t, Config{}), t.TempDir()
	if _, support := c.Find(t.Context()); support.GetLevel() < sandbox.Full {
		t.Log("the level full does not work here: " + support.GetReason())
		return
	}
	const show = "readlink /proc/self/ns/net"
	_, alone := c.run(t, dir, sandbox.Full, show)
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := c.Run(ctx, Request{Run: "run", Workspace: dir, Confinement: &harnessv1.Confinement{Level: sandbox.Full}}, process.Command{
			Line: "exec sleep 3600", Output: io.Discard, Begun: func(b process.Begun) {
				c.Share("run", b)
				close(begun)
			},
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-begun
	_, first := c.run(t, dir, sandbox.Full, show)
	_, second := c.run(t, dir, sandbox.Full, show)
	if n := c.networks.of("other"); n != nil {
		t.Error("another run has the network")
		n.close()
	}
	if first != second || first == alone {
		t.Errorf("commands are in the networks %q and %q, and before in %q", first, second, alone)
	}
	c.Unshare("run")
	if n := c.networks.of("run"); n != nil {
		t.Error("the network is left")
		n.close()
	}
	stop()
	<-ended
}
