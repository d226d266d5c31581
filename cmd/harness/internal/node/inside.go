package node

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// insideToolHost is a client of a tool host in the same process: the same interface, the
// same interceptor, copied messages, and no connection. A call takes microseconds; over
// an in-process connection it would take a tenth of a millisecond, more than the append
// before it.
type insideToolHost struct {
	host  harnessv1.ToolHostServiceServer
	unary grpc.UnaryServerInterceptor
}

var _ harnessv1.ToolHostServiceClient = (*insideToolHost)(nil)

// call calls the host as a server would: on a copy of the request, through the
// interceptor. As over a connection, a caller that leaves does not end the call.
func call[Req, Resp any, PReq interface {
	*Req
	proto.Message
}](ctx context.Context, c *insideToolHost, method string, req PReq, f func(context.Context, PReq) (Resp, error)) (Resp, error) {
	var none Resp
	if err := ctx.Err(); err != nil {
		return none, status.FromContextError(err).Err() // as a connection would
	}
	handler := func(ctx context.Context, req any) (any, error) { return f(ctx, req.(PReq)) }
	out, err := c.unary(ctx, proto.CloneOf(req), &grpc.UnaryServerInfo{Server: c.host, FullMethod: method}, handler)
	if err != nil {
		return none, err
	}
	return out.(Resp), nil
}

// putBackUnstarted ends the step of a call that the host starts no more, because the process
// is about to hand over: the step's next worker starts it.
func putBackUnstarted(ctx context.Context, err error) {
	if err != nil && fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED) {
		executor.PutBack(ctx)
	}
}

func (c *insideToolHost) DescribeHost(ctx context.Context, in *harnessv1.DescribeHostRequest, _ ...grpc.CallOption) (*harnessv1.DescribeHostResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_DescribeHost_FullMethodName, in, c.host.DescribeHost)
}

func (c *insideToolHost) DescribeWorkspace(ctx context.Context, in *harnessv1.DescribeWorkspaceRequest, _ ...grpc.CallOption) (*harnessv1.DescribeWorkspaceResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_DescribeWorkspace_FullMethodName, in, c.host.DescribeWorkspace)
}

func (c *insideToolHost) ExecuteTool(ctx context.Context, in *harnessv1.ExecuteToolRequest, _ ...grpc.CallOption) (*harnessv1.ExecuteToolResponse, error) {
	response, err := call(ctx, c, harnessv1.ToolHostService_ExecuteTool_FullMethodName, in, c.host.ExecuteTool)
	putBackUnstarted(ctx, err)
	return response, err
}

func (c *insideToolHost) ReadCallOutput(ctx context.Context, in *harnessv1.ReadCallOutputRequest, _ ...grpc.CallOption) (*harnessv1.ReadCallOutputResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_ReadCallOutput_FullMethodName, in, c.host.ReadCallOutput)
}

func (c *insideToolHost) CancelTools(ctx context.Context, in *harnessv1.CancelToolsRequest, _ ...grpc.CallOption) (*harnessv1.CancelToolsResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_CancelTools_FullMethodName, in, c.host.CancelTools)
}

func (c *insideToolHost) InspectWorkspace(ctx context.Context, in *harnessv1.InspectWorkspaceRequest, _ ...grpc.CallOption) (*harnessv1.InspectWorkspaceResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_InspectWorkspace_FullMethodName, in, c.host.InspectWorkspace)
}

func (c *insideToolHost) CheckFile(ctx context.Context, in *harnessv1.CheckFileRequest, _ ...grpc.CallOption) (*harnessv1.CheckFileResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_CheckFile_FullMethodName, in, c.host.CheckFile)
}

func (c *insideToolHost) CheckAddress(ctx context.Context, in *harnessv1.CheckAddressRequest, _ ...grpc.CallOption) (*harnessv1.CheckAddressResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_CheckAddress_FullMethodName, in, c.host.CheckAddress)
}

func (c *insideToolHost) CheckCommand(ctx context.Context, in *harnessv1.CheckCommandRequest, _ ...grpc.CallOption) (*harnessv1.CheckCommandResponse, error) {
	response, err := call(ctx, c, harnessv1.ToolHostService_CheckCommand_FullMethodName, in, c.host.CheckCommand)
	putBackUnstarted(ctx, err)
	return response, err
}

func (c *insideToolHost) MakeWorktree(ctx context.Context, in *harnessv1.MakeWorktreeRequest, _ ...grpc.CallOption) (*harnessv1.MakeWorktreeResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_MakeWorktree_FullMethodName, in, c.host.MakeWorktree)
}

func (c *insideToolHost) DescribeServers(ctx context.Context, in *harnessv1.DescribeServersRequest, _ ...grpc.CallOption) (*harnessv1.DescribeServersResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_DescribeServers_FullMethodName, in, c.host.DescribeServers)
}

func (c *insideToolHost) EndWorktree(ctx context.Context, in *harnessv1.EndWorktreeRequest, _ ...grpc.CallOption) (*harnessv1.EndWorktreeResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_EndWorktree_FullMethodName, in, c.host.EndWorktree)
}

func (c *insideToolHost) StartServerSignIn(ctx context.Context, in *harnessv1.StartServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.StartServerSignInResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_StartServerSignIn_FullMethodName, in, c.host.StartServerSignIn)
}

func (c *insideToolHost) FinishServerSignIn(ctx context.Context, in *harnessv1.FinishServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.FinishServerSignInResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_FinishServerSignIn_FullMethodName, in, c.host.FinishServerSignIn)
}

func (c *insideToolHost) DescribeServerSignIn(
	ctx context.Context, in *harnessv1.DescribeServerSignInRequest, _ ...grpc.CallOption,
) (*harnessv1.DescribeServerSignInResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_DescribeServerSignIn_FullMethodName, in, c.host.DescribeServerSignIn)
}

func (c *insideToolHost) EndServerSignIn(ctx context.Context, in *harnessv1.EndServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error) {
	return call(ctx, c, harnessv1.ToolHostService_EndServerSignIn_FullMethodName, in, c.host.EndServerSignIn)
}
