package repairserver

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// serverWait is how long the start of a run waits for its servers. One that is slower joins
// later.
const serverWait = 10 * time.Second

// seeServers asks the tool host how the servers of the run are, and stores the tools that the
// run has then.
func (o *observer) seeServers(ctx context.Context) (*harnessv1.McpSeen, error) {
	trigger, s := o.task.Step().GetRepairTrigger(), o.task.Step().GetSnapshot()
	request := &harnessv1.DescribeServersRequest{
		Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, FirstSequence: o.first(), Servers: o.definition.Mcp,
		Workspace: s.GetWorkspace(), Sandbox: s.GetConfig().GetSandbox(), Local: s.GetMcp().GetLocal(),
	}
	seen := mcptool.Input{Servers: o.definition.Mcp, Before: s.GetMcp()}
	if spec := trigger.GetSpec(); spec != nil {
		workspace, _, err := o.workspace(ctx)
		if err != nil {
			return nil, err
		}
		request.Workspace, request.Sandbox = workspace, runstate.Overlay(spec.GetConfig(), trigger.GetFeatureConfig()).GetSandbox()
		request.Local, request.Wait = namesServers(trigger.GetCaller()), durationpb.New(serverWait)
	} else {
		text, err := o.text(ctx, s.GetMcp().GetTools())
		if err != nil {
			return nil, err
		}
		if seen.Tools, err = mcptool.Decode(text); err != nil {
			return nil, fmt.Errorf("parse the tools of servers: %w", err)
		}
	}
	described, err := o.s.toolHost.DescribeServers(ctx, request)
	switch status.Code(err) {
	case codes.OK:
		seen.Described = described.GetServers()
	case codes.InvalidArgument, codes.Unimplemented: // Unimplemented: an older tool host
		for _, server := range o.definition.Mcp {
			seen.Described = append(seen.Described, &harnessv1.DescribedServer{
				Server: server.GetName(), State: harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, Message: status.Convert(err).Message(),
			})
		}
	default:
		return nil, executor.Retry("tool host", err)
	}
	selection := mcptool.Select(seen)
	text, err := mcptool.Encode(selection.Tools)
	if err != nil {
		return nil, err
	}
	state := &harnessv1.McpState{Digest: content.Digest([]byte(text)), Servers: selection.Servers, Local: request.GetLocal()}
	if state.Tools = s.GetMcp().GetTools(); state.GetDigest() != s.GetMcp().GetDigest() {
		ref, err := o.s.log.PutBlob(ctx, o.task.Run, []byte(text))
		if err != nil {
			return nil, err
		}
		state.Tools = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
	}
	return &harnessv1.McpSeen{State: state, Changes: selection.Changes, Tokens: selection.Tokens, Incomplete: selection.Incomplete}, nil
}

// text returns the text of a content of the run.
func (o *observer) text(ctx context.Context, c *harnessv1.Content) (string, error) {
	if c.GetBlob() == nil {
		return content.Text(c), nil
	}
	data, err := o.s.log.Blob(ctx, o.task.Run, c.GetBlob().GetDigest())
	return string(data), err
}

// namesServers reports whether a caller names the addresses of servers for itself: a local
// person, and not the holder of a token.
func namesServers(caller string) bool {
	return access.IsPerson(caller)
}

// endServers has the tool host stop the servers of a run that has ended. One that cannot be
// reached stops them when they are idle.
func (s *Server) endServers(ctx context.Context, e runlog.Entry) {
	snapshot := e.Record.GetStep().GetSnapshot()
	if snapshot.GetMcp() == nil || !runstate.Ended(snapshot) && !runstate.Expired(snapshot) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if _, err := s.toolHost.CancelTools(ctx, &harnessv1.CancelToolsRequest{
		Namespace: e.Run.Namespace, RunId: e.Run.ID, FirstSequence: snapshot.GetFirstSequence(), Servers: true,
	}); err != nil {
		s.logger.WarnContext(ctx, "servers of an ended run not stopped", "run", e.Run.ID, "error", err)
	}
}

// endTimeout bounds the end of the servers of a run.
const endTimeout = 10 * time.Second
