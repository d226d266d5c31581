package daemon

import (
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// pausePoll is how often a process that is to hand over checks whether commands run.
const pausePoll = 20 * time.Millisecond

// HandOver streams the commands that run, and ready once none does. From then on no tool
// call starts, until the stream ends. One stream at a time is ready.
func (p *process) HandOver(_ *harnessv1.HandOverRequest, stream grpc.ServerStreamingServer[harnessv1.HandOverResponse]) error {
	tick := time.NewTicker(pausePoll)
	defer tick.Stop()
	var sent []*harnessv1.LocalCommand
	for first := true; ; first = false {
		running, holds := p.pause()
		if holds {
			defer p.unpause()
			if err := stream.Send(&harnessv1.HandOverResponse{Ready: true}); err != nil {
				return err
			}
			select {
			case <-stream.Context().Done():
			case <-p.ended:
			}
			return nil
		}
		same := slices.EqualFunc(running, sent, func(a, b *harnessv1.LocalCommand) bool { return proto.Equal(a, b) })
		if first || !same {
			if err := stream.Send(&harnessv1.HandOverResponse{Commands: running}); err != nil {
				return err
			}
			sent = running
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return nil
		case <-p.ended:
			return status.Error(codes.Unavailable, "the background process ends")
		}
	}
}

// pause keeps tool calls from starting if no command runs and no other successor holds the
// process. Otherwise it returns the commands.
func (p *process) pause() (running []*harnessv1.LocalCommand, holds bool) {
	select {
	case p.successor <- struct{}{}:
	default:
		return nil, false
	}
	if running = p.node.Pause(); len(running) > 0 {
		<-p.successor
		return running, false
	}
	return nil, true
}

// unpause continues the work, unless the process hands over.
func (p *process) unpause() {
	p.node.Continue()
	<-p.successor
}
