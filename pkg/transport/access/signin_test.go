package access_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// TestSignInsNeedTheRightToApprove: all runs of a namespace use what a person signs in to, so a
// program without the right can neither sign in nor out. It can read whether they are.
func TestSignInsNeedTheRightToApprove(t *testing.T) {
	calls := map[string]func(context.Context, harnessv1.GatewayServiceClient) error{
		"begin": func(ctx context.Context, c harnessv1.GatewayServiceClient) error {
			_, err := c.StartSignIn(ctx, &harnessv1.StartSignInRequest{})
			return err
		},
		"finish": func(ctx context.Context, c harnessv1.GatewayServiceClient) error {
			_, err := c.FinishSignIn(ctx, &harnessv1.FinishSignInRequest{})
			return err
		},
		"out": func(ctx context.Context, c harnessv1.GatewayServiceClient) error {
			_, err := c.SignOut(ctx, &harnessv1.SignOutRequest{})
			return err
		},
		"get": func(ctx context.Context, c harnessv1.GatewayServiceClient) error {
			_, err := c.GetSignIn(ctx, &harnessv1.GetSignInRequest{})
			return err
		},
	}
	for attributes, may := range map[string]bool{"": true, "may=approve": true, "may=none": false, "may=commands,hooks,checks,scripts,prompts": false} {
		file, _, _ := tokens(t, forSome+" * "+attributes+"\n")
		client := harnessv1.NewGatewayServiceClient(dial(t, access.NewGuard(file).ServerOptions()...))
		for name, call := range calls {
			err := call(withToken(t, "Bearer "+forSome), client)
			refused := status.Code(err) == codes.PermissionDenied
			if refused != (!may && name != "get") || refused && !strings.Contains(err.Error(), `has no right "approve"`) {
				t.Errorf("%s with %q: %v", name, attributes, err)
			}
		}
	}
}
