package gatewayhttp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

// signInGateway is a gateway that keeps the last request of a sign-in.
type signInGateway struct {
	harnessv1.GatewayServiceClient
	last proto.Message
}

func (g *signInGateway) StartSignIn(_ context.Context, r *harnessv1.StartSignInRequest, _ ...grpc.CallOption) (*harnessv1.StartSignInResponse, error) {
	g.last = r
	return &harnessv1.StartSignInResponse{Start: &harnessv1.SignInStart{AuthorizationUrl: "https://a.example/authorize", State: "s", LedgerId: "l", Valid: durationpb.New(600e9)}}, nil
}

func (g *signInGateway) FinishSignIn(_ context.Context, r *harnessv1.FinishSignInRequest, _ ...grpc.CallOption) (*harnessv1.FinishSignInResponse, error) {
	g.last = r
	return &harnessv1.FinishSignInResponse{State: &harnessv1.SignInState{SignedIn: true, Renewed: true}}, nil
}

func (g *signInGateway) GetSignIn(_ context.Context, r *harnessv1.GetSignInRequest, _ ...grpc.CallOption) (*harnessv1.GetSignInResponse, error) {
	g.last = r
	return &harnessv1.GetSignInResponse{State: &harnessv1.SignInState{}, Hosts: []*harnessv1.SignInHost{{LedgerId: "l", Instance: "i", Error: "away"}}}, nil
}

func (g *signInGateway) SignOut(_ context.Context, r *harnessv1.SignOutRequest, _ ...grpc.CallOption) (*harnessv1.SignOutResponse, error) {
	g.last = r
	return &harnessv1.SignOutResponse{Removed: true}, nil
}

const webServer = `{"server":{"name":"web","url":"https://mcp.example/mcp","oauth":{"client_id":"${ID}"}},"variables":{"ID":"x"}}`

// TestSignInsOverHTTP: each route makes the call of the gateway with all fields, and mistakes name
// theirs.
func TestSignInsOverHTTP(t *testing.T) {
	gateway := &signInGateway{}
	b := newBed(t, func(c *gatewayhttp.Config) {
		gateway.GatewayServiceClient = c.Gateway
		c.Gateway = gateway
	})
	subject := &harnessv1.SignInSubject{
		Server:    &harnessv1.McpServer{Name: "web", Url: "https://mcp.example/mcp", Oauth: &harnessv1.McpOAuth{ClientId: "${ID}"}},
		Variables: map[string]string{"ID": "x"},
	}
	for _, c := range []struct {
		path, body, answer string
		want               proto.Message
	}{
		{
			"/v1/sign-ins/start?namespace=n", `{"subject":` + webServer + `,"redirect_uri":"http://127.0.0.1:1/callback","ledger_id":"l"}`, "start",
			&harnessv1.StartSignInRequest{Namespace: "n", Subject: subject, RedirectUri: "http://127.0.0.1:1/callback", LedgerId: "l"},
		},
		{
			"/v1/sign-ins/finish", `{"returned":{"state":"s","ledger_id":"l","code":"c","issuer":"i"}}`, "state",
			&harnessv1.FinishSignInRequest{Namespace: b.namespace, Returned: &harnessv1.SignInReturn{State: "s", LedgerId: "l", Code: "c", Issuer: "i"}},
		},
		{"/v1/sign-ins/get", `{"subject":` + webServer + `}`, "hosts", &harnessv1.GetSignInRequest{Namespace: b.namespace, Subject: subject}},
		{"/v1/sign-ins/end", `{"subject":` + webServer + `}`, "removed", &harnessv1.SignOutRequest{Namespace: b.namespace, Subject: subject}},
	} {
		a := b.do(http.MethodPost, c.path, c.body)
		if a.status != http.StatusOK || a.object(t)[c.answer] == nil || !proto.Equal(gateway.last, c.want) {
			t.Errorf("%s: %d %s, %v", c.path, a.status, a.body, gateway.last)
		}
	}
	gateway.last = nil
	for _, c := range []struct{ path, body, field string }{
		{"/v1/sign-ins/start", `{"namespace":"n"}`, "namespace"},
		{"/v1/sign-ins/start", `{"subject":{"servers":{}}}`, "subject.servers"},
		{"/v1/sign-ins/finish", `{}`, "returned"},
		{"/v1/sign-ins/get", `{"redirect_uri":"x"}`, "redirect_uri"},
		{"/v1/sign-ins/end", `{"subject":{"variables":{"ID":1}}}`, "subject.variables.ID"},
	} {
		a := b.do(http.MethodPost, c.path, c.body)
		if a.status != http.StatusBadRequest || a.problem(t)["field"] != c.field || gateway.last != nil {
			t.Errorf("%s %s: %d %s", c.path, c.body, a.status, a.body)
		}
	}
}

// TestRoutesOfSignInsNeedTheRightsOfTheToken, as the calls over gRPC do.
func TestRoutesOfSignInsNeedTheRightsOfTheToken(t *testing.T) {
	b := newBed(t)
	path := filepath.Join(t.TempDir(), "tokens")
	b.must(os.WriteFile(path, []byte("token-without-rights * may=commands\ntoken-with-the-right * may=approve\n"), 0o600))
	file, err := access.Open(path, slog.New(slog.DiscardHandler))
	b.must(err)
	guard := access.NewGuard(file)
	server := httptest.NewServer(guard.HTTP(gatewayhttp.New(gatewayhttp.Config{Gateway: harnessv1.NewGatewayServiceClient(guard.Confine(b.conn))}), nil))
	defer server.Close()
	b.http.Close()
	b.http = server
	const noHost = http.StatusBadRequest // it may, and this gateway has no tool host
	for _, c := range []struct {
		path, body string
		without    int
	}{
		{"/v1/sign-ins/start", `{"subject":` + webServer + `}`, http.StatusForbidden},
		{"/v1/sign-ins/finish", `{"returned":{"state":"s"}}`, http.StatusForbidden},
		{"/v1/sign-ins/get", `{"subject":` + webServer + `}`, noHost},
		{"/v1/sign-ins/end", `{"subject":` + webServer + `}`, http.StatusForbidden},
	} {
		for token, want := range map[string]int{"token-with-the-right": noHost, "token-without-rights": c.without} {
			if a := b.do(http.MethodPost, c.path, c.body, "Authorization", "Bearer "+token); a.status != want {
				t.Errorf("%s with %s: %d %s", c.path, token, a.status, a.body)
			}
		}
	}
}
