package command

import (
	"bufio"
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
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	seen, output := io.Pipe()
	workplace := folder(t, dir)
	go func() {
		defer close(ended)
		_, err := c.Run(ctx, Request{Run: "run", Workspace: dir, Folder: workplace, Confinement: &harnessv1.Confinement{Level: sandbox.Full}}, process.Command{
			Line: show + "; exec sleep 3600", Output: output, Begun: func(b process.Begun) {
				c.Share("run", b)
				close(begun)
			},
		})
		if err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-begun:
	case <-ended:
		t.Fatal("the command that has the network has not begun")
	}
	// The number of a network that has ended is used again, so compare with one that lives.
	shared, err := bufio.NewReader(seen).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, joined := c.run(t, dir, sandbox.Full, show); joined != shared {
		t.Errorf("a command is in the network %q, and not in %q", joined, shared)
	}
	if n := c.networks.of("other"); n != nil {
		t.Error("another run has the network")
		n.close()
	}
	c.Unshare("run")
	if n := c.networks.of("run"); n != nil {
		t.Error("the network is left")
		n.close()
	}
	if _, alone := c.run(t, dir, sandbox.Full, show); alone == shared {
		t.Errorf("a command is in the network %q, which is forgotten", shared)
	}
	stop()
	<-ended
}
