package access_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
		conn := dial(t, access.NewGuard(file).ServerOptions()...)
		_, err := harnessv1.NewToolHostServiceClient(conn).DescribeWorkspace(withToken(t, "Bearer "+forSome), &harnessv1.DescribeWorkspaceRequest{})
		refused := status.Code(err) == codes.PermissionDenied
		if refused == may || refused && !strings.Contains(err.Error(), "may= that leaves out more than prompts") {
			t.Errorf("%s: %v", attributes, err)
		}
	}
}
