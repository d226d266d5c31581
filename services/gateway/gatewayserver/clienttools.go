package gatewayserver

import (
	"context"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// declare sets the tools that clients run for a run.
func (s *Server) declare(ctx context.Context, run runlog.Run, requestID string, tools []*harnessv1.ToolSpec) error {
	const field = "attach.client_tools"
	if err := gateway.CheckClientTools(field, tools); err != nil {
		return err
	}
	names, err := s.toolNames(ctx)
	if err != nil {
		return err
	}
	if err := gateway.CheckClientNames(field, tools, names); err != nil {
		return err
	}
	view, err := s.view(ctx, run) // before anything is stored for a run that does not exist
	if err != nil {
		return s.failure(ctx, "attach to", run, err)
	}
	agents, err := s.agents(ctx, run, view.Step.Record.GetStep())
	if err != nil {
		return s.failure(ctx, "attach to", run, err)
	}
	if err := gateway.CheckClientNames(field, tools, tree.Names(agents)); err != nil {
		return err
	}
	stored, cancel := s.committing(ctx)
	defer cancel()
	ref, err := s.putTools(stored, run, tools)
	if err != nil {
		return s.failure(ctx, "attach to", run, err)
	}
	_, _, err = s.input(ctx, run.Namespace, run.ID, &harnessv1.InboxItem{
		Id:    requestID,
		Input: &harnessv1.InboxItem_ToolsDeclared{ToolsDeclared: &harnessv1.ToolsDeclared{Tools: ref}},
	})
	return err
}

// putTools stores the tools that a client runs; nil for none.
func (s *Server) putTools(ctx context.Context, run runlog.Run, tools []*harnessv1.ToolSpec) (*harnessv1.Content, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	ref, err := s.log.PutBlob(ctx, run, []byte(gateway.EncodeClientTools(tools)))
	if err != nil {
		return nil, err
	}
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}, nil
}

// toolNames returns the names of the tools that exist without a client; none if
// Config.Tools is nil.
func (s *Server) toolNames(ctx context.Context) ([]string, error) {
	if s.tools == nil {
		return nil, nil
	}
	specs, err := s.hostTools(ctx)
	if err != nil {
		return nil, err
	}
	names := harnesstool.Names()
	for _, t := range specs {
		names = append(names, t.GetName())
	}
	return names, nil
}

// hostTools returns the tools of the tool host; none if Config.Tools is nil.
func (s *Server) hostTools(ctx context.Context) ([]*harnessv1.ToolSpec, error) {
	if s.tools == nil {
		return nil, nil
	}
	specs, err := s.tools(ctx)
	if err != nil {
		return nil, because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_TOOL_HOST_UNAVAILABLE,
			"the tool host, which knows the tools, cannot be reached; send the same request again")
	}
	return specs, nil
}
