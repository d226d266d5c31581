package node

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// toolHosts is a client of all tool hosts. A call that was started under a ledger goes
// to the host of that ledger or to its successor; any other call goes to the host in
// this process, otherwise to any host.
type toolHosts struct {
	inside *insideToolHost // nil without one
	ledger string          // of inside
	dial   func(role string) (*grpc.ClientConn, error)

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by role
}

var _ harnessv1.ToolHostServiceClient = (*toolHosts)(nil)

// of returns a client for calls under a ledger; empty means any host.
func (t *toolHosts) of(ledger string) (harnessv1.ToolHostServiceClient, error) {
	role := workflow.ToolHost
	if t.inside != nil {
		if ledger == "" || ledger == t.ledger || toolhost.Replaces(t.ledger, ledger) {
			return t.inside, nil
		}
	}
	if ledger != "" {
		role += "." + ledger
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	conn := t.conns[role]
	if conn == nil {
		var err error
		if conn, err = t.dial(role); err != nil {
			return nil, err
		}
		if t.conns == nil {
			t.conns = map[string]*grpc.ClientConn{}
		}
		t.conns[role] = conn
	}
	return harnessv1.NewToolHostServiceClient(conn), nil
}

func (t *toolHosts) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	for _, conn := range t.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// DescribeHost calls any host.
func (t *toolHosts) DescribeHost(ctx context.Context, in *harnessv1.DescribeHostRequest, opts ...grpc.CallOption) (*harnessv1.DescribeHostResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.DescribeHost(ctx, in, opts...)
}

// DescribeWorkspace calls any host.
func (t *toolHosts) DescribeWorkspace(ctx context.Context, in *harnessv1.DescribeWorkspaceRequest, opts ...grpc.CallOption) (*harnessv1.DescribeWorkspaceResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.DescribeWorkspace(ctx, in, opts...)
}

// ExecuteTool calls the host of the ledger.
func (t *toolHosts) ExecuteTool(ctx context.Context, in *harnessv1.ExecuteToolRequest, opts ...grpc.CallOption) (*harnessv1.ExecuteToolResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.ExecuteTool(ctx, in, opts...)
}

// ReadCallOutput calls the host of the ledger.
func (t *toolHosts) ReadCallOutput(ctx context.Context, in *harnessv1.ReadCallOutputRequest, opts ...grpc.CallOption) (*harnessv1.ReadCallOutputResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.ReadCallOutput(ctx, in, opts...)
}

// InspectWorkspace calls the host of the ledger of its background commands; without any, any
// host.
func (t *toolHosts) InspectWorkspace(ctx context.Context, in *harnessv1.InspectWorkspaceRequest, opts ...grpc.CallOption) (*harnessv1.InspectWorkspaceResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.InspectWorkspace(ctx, in, opts...)
}

// CheckFile calls any host.
func (t *toolHosts) CheckFile(ctx context.Context, in *harnessv1.CheckFileRequest, opts ...grpc.CallOption) (*harnessv1.CheckFileResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.CheckFile(ctx, in, opts...)
}

// CheckAddress calls any host.
func (t *toolHosts) CheckAddress(ctx context.Context, in *harnessv1.CheckAddressRequest, opts ...grpc.CallOption) (*harnessv1.CheckAddressResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.CheckAddress(ctx, in, opts...)
}

// CheckCommand calls the host in this process or, over the same connection, the one that
// was called before. So a repeated request with a key reaches the same host while it
// exists, and so does CancelTools without a ledger; a successor with the same ledger
// knows the key too. Any other host runs the command again.
func (t *toolHosts) CheckCommand(ctx context.Context, in *harnessv1.CheckCommandRequest, opts ...grpc.CallOption) (*harnessv1.CheckCommandResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.CheckCommand(ctx, in, opts...)
}

// CancelTools calls the host of the ledger.
func (t *toolHosts) CancelTools(ctx context.Context, in *harnessv1.CancelToolsRequest, opts ...grpc.CallOption) (*harnessv1.CancelToolsResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.CancelTools(ctx, in, opts...)
}

// MakeWorktree calls any host, which is that of the calls of the run if there is one host.
func (t *toolHosts) MakeWorktree(ctx context.Context, in *harnessv1.MakeWorktreeRequest, opts ...grpc.CallOption) (*harnessv1.MakeWorktreeResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.MakeWorktree(ctx, in, opts...)
}

// DescribeServers calls any host, as MakeWorktree does.
func (t *toolHosts) DescribeServers(ctx context.Context, in *harnessv1.DescribeServersRequest, opts ...grpc.CallOption) (*harnessv1.DescribeServersResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.DescribeServers(ctx, in, opts...)
}

// EndWorktree calls any host, as MakeWorktree does.
func (t *toolHosts) EndWorktree(ctx context.Context, in *harnessv1.EndWorktreeRequest, opts ...grpc.CallOption) (*harnessv1.EndWorktreeResponse, error) {
	host, err := t.of("")
	if err != nil {
		return nil, err
	}
	return host.EndWorktree(ctx, in, opts...)
}

// StartServerSignIn begins a sign-in at the host of the ledger, or at any.
func (t *toolHosts) StartServerSignIn(ctx context.Context, in *harnessv1.StartServerSignInRequest, opts ...grpc.CallOption) (*harnessv1.StartServerSignInResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.StartServerSignIn(ctx, in, opts...)
}

// FinishServerSignIn calls the host that has begun the sign-in.
func (t *toolHosts) FinishServerSignIn(ctx context.Context, in *harnessv1.FinishServerSignInRequest, opts ...grpc.CallOption) (*harnessv1.FinishServerSignInResponse, error) {
	host, err := t.of(in.GetReturned().GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.FinishServerSignIn(ctx, in, opts...)
}

// DescribeServerSignIn calls the host of the ledger, or any.
func (t *toolHosts) DescribeServerSignIn(ctx context.Context, in *harnessv1.DescribeServerSignInRequest, opts ...grpc.CallOption) (*harnessv1.DescribeServerSignInResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.DescribeServerSignIn(ctx, in, opts...)
}

// EndServerSignIn calls the host of the ledger, or any.
func (t *toolHosts) EndServerSignIn(ctx context.Context, in *harnessv1.EndServerSignInRequest, opts ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error) {
	host, err := t.of(in.GetLedgerId())
	if err != nil {
		return nil, err
	}
	return host.EndServerSignIn(ctx, in, opts...)
}
