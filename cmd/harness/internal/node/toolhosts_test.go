package node

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// anyHost answers everything; it does nothing.
type anyHost struct {
	harnessv1.UnimplementedToolHostServiceServer
}

func (anyHost) InspectWorkspace(context.Context, *harnessv1.InspectWorkspaceRequest) (*harnessv1.InspectWorkspaceResponse, error) {
	return &harnessv1.InspectWorkspaceResponse{FilesChanged: 3}, nil
}

func (anyHost) CheckFile(_ context.Context, r *harnessv1.CheckFileRequest) (*harnessv1.CheckFileResponse, error) {
	return &harnessv1.CheckFileResponse{Exists: true, Text: r.GetPath()}, nil
}

func (anyHost) CheckCommand(_ context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
	return &harnessv1.CheckCommandResponse{Output: r.GetKey()}, nil
}

func (anyHost) CancelTools(_ context.Context, r *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	return &harnessv1.CancelToolsResponse{Killed: r.GetCallIds()}, nil
}

// asks makes the calls of the harness and the cancel that belongs to them.
func asks(t *testing.T, hosts *toolHosts) {
	t.Helper()
	ctx := context.Background()
	inspected, err1 := hosts.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{})
	file, err2 := hosts.CheckFile(ctx, &harnessv1.CheckFileRequest{Path: "p"})
	command, err3 := hosts.CheckCommand(ctx, &harnessv1.CheckCommandRequest{Key: "k"})
	cancelled, err4 := hosts.CancelTools(ctx, &harnessv1.CancelToolsRequest{CallIds: []string{"k"}})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Error(err)
		}
	}
	if inspected.GetFilesChanged() != 3 || file.GetText() != "p" || command.GetOutput() != "k" || !slices.Equal(cancelled.GetKilled(), []string{"k"}) {
		t.Errorf("got %v, %v, %v, %v", inspected, file, command, cancelled)
	}
}

func TestWhatTheHarnessAsksItselfGoesToTheHostInTheProcess(t *testing.T) {
	hosts := &toolHosts{
		ledger: "0123456789ab-0123456789abcdef",
		inside: &insideToolHost{host: anyHost{}, unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, req)
		}},
		dial: func(role string) (*grpc.ClientConn, error) {
			t.Errorf("%s is called over a connection", role)
			return nil, net.ErrClosed
		},
	}
	asks(t, hosts)
}

func TestWithoutOneItGoesToOneHostOverOneConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	harnessv1.RegisterToolHostServiceServer(server, anyHost{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	var dialled []string
	hosts := &toolHosts{dial: func(role string) (*grpc.ClientConn, error) {
		dialled = append(dialled, role)
		return grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	}}
	asks(t, hosts)
	asks(t, hosts)
	if err := hosts.close(); err != nil || !slices.Equal(dialled, []string{workflow.ToolHost}) {
		t.Errorf("dialled %v, %v", dialled, err)
	}
}
