package sim

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ToolHosts returns a process's client of all tool hosts: a call that was started under
// a ledger goes to the host that has it or has replaced it, everything else to any
// host.
func (p *Process) ToolHosts() harnessv1.ToolHostServiceClient { return &hosts{p: p} }

type hosts struct{ p *Process }

// host returns the host of a ledger; nil if it is not available.
func (w *World) host(ledger string) *host {
	place, _, _ := strings.Cut(ledger, "-")
	for _, h := range w.hosts {
		if ledger == "" && !h.down || ledger != "" && strings.HasPrefix(h.ledger, place+"-") {
			if h.down {
				return nil
			}
			return h
		}
	}
	return nil
}

func away(name string) error { return status.Error(codes.Unavailable, name+" cannot be reached") }

// request makes a request; without an answer its error is UNAVAILABLE.
func (c *hosts) request(ctx context.Context, o *op) error {
	o.deadline = time.Now().Add(time.Hour)
	err := c.p.interact(ctx, o)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// DescribeHost calls any host.
func (c *hosts) DescribeHost(ctx context.Context, _ *harnessv1.DescribeHostRequest, _ ...grpc.CallOption) (r *harnessv1.DescribeHostResponse, err error) {
	w := c.p.world
	o := &op{key: key{kind: onDescribe}}
	o.do = func(fate) error {
		var there []*host
		for _, h := range w.hosts {
			if !h.down {
				there = append(there, h)
			}
		}
		if len(there) == 0 {
			return away("a tool host")
		}
		h := there[w.random.IntN(len(there))]
		o.note = h.ledger
		r = &harnessv1.DescribeHostResponse{Tools: tools, LedgerId: h.ledger}
		return nil
	}
	if err := c.request(ctx, o); err != nil {
		return nil, err
	}
	return r, nil
}

// DescribeWorkspace calls any host.
func (c *hosts) DescribeWorkspace(ctx context.Context, r *harnessv1.DescribeWorkspaceRequest, _ ...grpc.CallOption) (*harnessv1.DescribeWorkspaceResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, text: "workspace"}); err != nil {
		return nil, err
	}
	return &harnessv1.DescribeWorkspaceResponse{Environment: &harnessv1.Environment{Folder: &harnessv1.WorkspaceFolder{Path: r.GetWorkspace(), Inode: 1}}}, nil
}

// ExecuteTool runs a call once, joins it or returns its result.
func (c *hosts) ExecuteTool(ctx context.Context, r *harnessv1.ExecuteToolRequest, _ ...grpc.CallOption) (resp *harnessv1.ExecuteToolResponse, err error) {
	w := c.p.world
	o := &op{key: key{kind: onExecute, run: r.GetRunId(), text: r.GetCallId()}}
	answer := func(a *harnessv1.ExecuteToolResponse) { resp = a }
	o.do = func(fate) error { return w.execute(o, r, answer) }
	if err := c.request(ctx, o); err != nil {
		return nil, err
	}
	return resp, nil
}

// ReadCallOutput returns nothing: no command prints anything here.
func (c *hosts) ReadCallOutput(context.Context, *harnessv1.ReadCallOutputRequest, ...grpc.CallOption) (*harnessv1.ReadCallOutputResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no output")
}

// CancelTools kills calls and prevents them from starting.
func (c *hosts) CancelTools(ctx context.Context, r *harnessv1.CancelToolsRequest, _ ...grpc.CallOption) (resp *harnessv1.CancelToolsResponse, err error) {
	w := c.p.world
	o := &op{key: key{kind: onCancel, run: r.GetRunId(), text: strings.Join(r.GetCallIds(), " ")}}
	o.do = func(fate) error {
		h := w.host(r.GetLedgerId())
		if h == nil {
			return away("the tool host")
		}
		resp = h.cancel(r)
		return nil
	}
	if err := c.request(ctx, o); err != nil {
		return nil, err
	}
	return resp, nil
}

// InspectWorkspace calls any host: nothing has changed.
func (c *hosts) InspectWorkspace(ctx context.Context, r *harnessv1.InspectWorkspaceRequest, _ ...grpc.CallOption) (*harnessv1.InspectWorkspaceResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, run: r.GetRunId(), text: "changes"}); err != nil {
		return nil, err
	}
	return &harnessv1.InspectWorkspaceResponse{}, nil
}

// CheckFile calls any host: no file exists.
func (c *hosts) CheckFile(ctx context.Context, r *harnessv1.CheckFileRequest, _ ...grpc.CallOption) (*harnessv1.CheckFileResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, text: "file " + r.GetPath()}); err != nil {
		return nil, err
	}
	return &harnessv1.CheckFileResponse{Why: "no such file or folder"}, nil
}

// CheckAddress calls any host: no address answers.
func (c *hosts) CheckAddress(ctx context.Context, r *harnessv1.CheckAddressRequest, _ ...grpc.CallOption) (*harnessv1.CheckAddressResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, run: r.GetRunId(), text: "address " + r.GetUrl()}); err != nil {
		return nil, err
	}
	return &harnessv1.CheckAddressResponse{Error: "it cannot be reached"}, nil
}

// anyHost calls any host for something that every host answers identically.
func (c *hosts) anyHost(ctx context.Context, k key) error {
	w := c.p.world
	return c.request(ctx, &op{key: k, do: func(fate) error {
		if w.host("") == nil {
			return away("a tool host")
		}
		return nil
	}})
}

// CheckCommand runs a command once, joins it or returns its result: exit code 0.
func (c *hosts) CheckCommand(ctx context.Context, r *harnessv1.CheckCommandRequest, _ ...grpc.CallOption) (resp *harnessv1.CheckCommandResponse, err error) {
	w := c.p.world
	o := &op{key: key{kind: onExecute, run: r.GetRunId(), text: r.GetKey()}}
	answer := func(a *harnessv1.CheckCommandResponse) { resp = a }
	o.do = func(fate) error { return w.check(o, r, answer) }
	if err := c.request(ctx, o); err != nil {
		return nil, err
	}
	return resp, nil
}

// MakeWorktree calls any host: the worktree is a path, because there are no files.
func (c *hosts) MakeWorktree(ctx context.Context, r *harnessv1.MakeWorktreeRequest, _ ...grpc.CallOption) (*harnessv1.MakeWorktreeResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, run: r.GetRunId(), text: "worktree"}); err != nil {
		return nil, err
	}
	return &harnessv1.MakeWorktreeResponse{Workspace: "/worktrees/" + r.GetRunId()}, nil
}

// DescribeServers calls any host: there are no servers.
func (c *hosts) DescribeServers(ctx context.Context, r *harnessv1.DescribeServersRequest, _ ...grpc.CallOption) (*harnessv1.DescribeServersResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, run: r.GetRunId(), text: "servers"}); err != nil {
		return nil, err
	}
	return &harnessv1.DescribeServersResponse{}, nil
}

// EndWorktree calls any host: nothing has changed.
func (c *hosts) EndWorktree(ctx context.Context, r *harnessv1.EndWorktreeRequest, _ ...grpc.CallOption) (*harnessv1.EndWorktreeResponse, error) {
	if err := c.anyHost(ctx, key{kind: onDescribe, run: r.GetRunId(), text: "worktree ends"}); err != nil {
		return nil, err
	}
	return &harnessv1.EndWorktreeResponse{}, nil
}

// StartServerSignIn fails: no person signs in.
func (c *hosts) StartServerSignIn(context.Context, *harnessv1.StartServerSignInRequest, ...grpc.CallOption) (*harnessv1.StartServerSignInResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no person signs in")
}

// FinishServerSignIn fails: no person signs in.
func (c *hosts) FinishServerSignIn(context.Context, *harnessv1.FinishServerSignInRequest, ...grpc.CallOption) (*harnessv1.FinishServerSignInResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no person signs in")
}

// DescribeServerSignIn fails: no person signs in.
func (c *hosts) DescribeServerSignIn(context.Context, *harnessv1.DescribeServerSignInRequest, ...grpc.CallOption) (*harnessv1.DescribeServerSignInResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no person signs in")
}

// EndServerSignIn fails: no person signs in.
func (c *hosts) EndServerSignIn(context.Context, *harnessv1.EndServerSignInRequest, ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no person signs in")
}
