package access_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// TestPromptsAndProfilesNeedTheRightsOfTheToken: changes need the right prompts, and the profile of
// a workspace needs a root that has it. Reading prompts needs neither.
func TestPromptsAndProfilesNeedTheRightsOfTheToken(t *testing.T) {
	calls := map[string]func(ctx context.Context, client harnessv1.GatewayServiceClient, profile string) error{
		"read prompts": func(ctx context.Context, client harnessv1.GatewayServiceClient, _ string) error {
			_, err := client.GetPrompts(ctx, &harnessv1.GetPromptsRequest{})
			return err
		},
		"set": func(ctx context.Context, client harnessv1.GatewayServiceClient, _ string) error {
			_, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Id: "healing", Text: "x"})
			return err
		},
		"show": func(ctx context.Context, client harnessv1.GatewayServiceClient, profile string) error {
			_, err := client.GetProfile(ctx, &harnessv1.GetProfileRequest{Profile: profile})
			return err
		},
		"reset": func(ctx context.Context, client harnessv1.GatewayServiceClient, profile string) error {
			_, err := client.ResetProfile(ctx, &harnessv1.ResetProfileRequest{Profile: profile})
			return err
		},
	}
	for _, c := range []struct {
		attributes, call, profile string
		words                     string // of the refusal; "" if there is none
	}{
		{"", "set", "", ""},
		{"", "reset", "/srv/other", ""},
		{"may=prompts", "set", "", ""},
		{"may=prompts", "reset", "/srv/other", ""},
		{"may=none", "read prompts", "", ""},
		{"may=none", "show", "/srv/other", ""},
		{"may=none", "set", "", "id: changes the prompts of all runs of the namespace, and the token has no right \"prompts\": ask for one whose line has may=prompts"},
		{"may=commands,hooks,checks,scripts,approve", "set", "", "may=prompts"},
		{"may=none", "reset", "/srv/other", "profile: forgets what all runs of the profile have shown, and the token has no right \"prompts\""},
		{"may=commands,hooks,checks,scripts,approve", "reset", "reports", "may=prompts"},
		{"roots=/srv/work", "show", "/srv/work/a", ""},
		{"roots=/srv/work", "show", "reports", ""},
		{"roots=/srv/work", "show", "/srv/other", "profile: \"/srv/other\" is not within the folders of the token"},
		{"roots=/srv/work", "show", "/srv/work/../other", "is not within the folders of the token"},
		{"roots=/srv/work", "reset", "/srv/work", ""},
		{"roots=/srv/work", "reset", "/srv", "profile: \"/srv\" is not within the folders of the token"},
	} {
		file, _, _ := tokens(t, forSome+" * "+c.attributes+"\n")
		guard := access.NewGuard(file)
		over := map[string]error{"gRPC": calls[c.call](withToken(t, "Bearer "+forSome), harnessv1.NewGatewayServiceClient(dial(t, guard.ServerOptions()...)), c.profile)}
		inside := guard.Confine(dial(t))
		request := httptest.NewRequest(http.MethodPut, "/v1/prompts/healing", nil)
		request.Header.Set("Authorization", "Bearer "+forSome)
		guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
			over["HTTP"] = calls[c.call](in.Context(), harnessv1.NewGatewayServiceClient(inside), c.profile)
		}), nil).ServeHTTP(httptest.NewRecorder(), request)
		for way, err := range over {
			refused := status.Code(err) == codes.PermissionDenied
			if refused != (c.words != "") || refused && !strings.Contains(status.Convert(err).Message(), c.words) {
				t.Errorf("%s %s with %q over %s: %v, want %q", c.call, c.profile, c.attributes, way, err, c.words)
			}
		}
	}
}
