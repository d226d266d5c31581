package access_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// TestRolesAreReachedWithoutTheRightToPrompts: lines of the other rights are older than it.
func TestRolesAreReachedWithoutTheRightToPrompts(t *testing.T) {
	for attributes, may := range map[string]bool{
		"may=commands,hooks,checks,scripts,approve": true, "may=commands,hooks,checks,scripts,approve,prompts": true,
		"may=hooks,checks,scripts,approve,prompts": false, "may=prompts": false,
	} {
		file, _, _ := tokens(t, forSome+" * "+attributes+"\n")
		pipe, server := bufconn.Listen(1<<16), grpc.NewServer(access.NewGuard(file).ServerOptions()...)
		harnessv1.RegisterToolHostServiceServer(server, harnessv1.UnimplementedToolHostServiceServer{})
		go func() { _ = server.Serve(pipe) }()
		t.Cleanup(server.Stop)
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, err = harnessv1.NewToolHostServiceClient(conn).DescribeWorkspace(withToken(t, "Bearer "+forSome), &harnessv1.DescribeWorkspaceRequest{})
		refused := status.Code(err) == codes.PermissionDenied
		if refused == may || refused && !strings.Contains(err.Error(), "may= that leaves out more than prompts") {
			t.Errorf("%s: %v", attributes, err)
		}
	}
}
