package gatewayserver_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// signInHost is a tool host that receives sign-ins.
type signInHost struct{ received []proto.Message }

func (h *signInHost) StartServerSignIn(_ context.Context, r *harnessv1.StartServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.StartServerSignInResponse, error) {
	h.received = append(h.received, r)
	return &harnessv1.StartServerSignInResponse{Start: &harnessv1.SignInStart{State: "s", LedgerId: "l"}}, nil
}

func (h *signInHost) FinishServerSignIn(_ context.Context, r *harnessv1.FinishServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.FinishServerSignInResponse, error) {
	h.received = append(h.received, r)
	return &harnessv1.FinishServerSignInResponse{State: &harnessv1.SignInState{SignedIn: true}}, nil
}

func (h *signInHost) DescribeServerSignIn(_ context.Context, r *harnessv1.DescribeServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.DescribeServerSignInResponse, error) {
	h.received = append(h.received, r)
	return &harnessv1.DescribeServerSignInResponse{State: &harnessv1.SignInState{Renewed: true}}, nil
}

func (h *signInHost) EndServerSignIn(_ context.Context, r *harnessv1.EndServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error) {
	h.received = append(h.received, r)
	return &harnessv1.EndServerSignInResponse{Removed: true}, nil
}

func webSubject() *harnessv1.SignInSubject {
	return &harnessv1.SignInSubject{Server: &harnessv1.McpServer{Name: "web", Url: "https://mcp.example/mcp"}, Variables: map[string]string{"ID": "x"}}
}

// TestSignInsReachTheToolHost: with the namespace, and with whether a local person has named the
// server.
func TestSignInsReachTheToolHost(t *testing.T) {
	host := &signInHost{}
	b := newBed(t, func(c *gatewayserver.Config) { c.SignIns = host })
	person, holder := b.ctx, metadata.AppendToOutgoingContext(b.ctx, "harness-caller", "ci")
	begun, err := b.client.StartSignIn(person, &harnessv1.StartSignInRequest{Subject: webSubject(), RedirectUri: "http://127.0.0.1:1/callback"})
	b.must(err)
	finished, err := b.client.FinishSignIn(person, &harnessv1.FinishSignInRequest{Namespace: "other", Returned: &harnessv1.SignInReturn{State: "s", LedgerId: "l", Code: "c", Issuer: "i"}})
	b.must(err)
	state, err := b.client.GetSignIn(person, &harnessv1.GetSignInRequest{Subject: webSubject()})
	b.must(err)
	out, err := b.client.SignOut(person, &harnessv1.SignOutRequest{Subject: webSubject()})
	b.must(err)
	if _, err := b.client.StartSignIn(holder, &harnessv1.StartSignInRequest{Namespace: "n", Subject: webSubject()}); err != nil {
		t.Error(err)
	}
	if begun.GetStart().GetLedgerId() != "l" || !finished.GetState().GetSignedIn() || !state.GetState().GetRenewed() || !out.GetRemoved() {
		t.Errorf("%v, %v, %v, %v", begun, finished, state, out)
	}
	want := []proto.Message{
		&harnessv1.StartServerSignInRequest{Namespace: "default", Subject: webSubject(), RedirectUri: "http://127.0.0.1:1/callback", Local: true},
		&harnessv1.FinishServerSignInRequest{Namespace: "other", Returned: &harnessv1.SignInReturn{State: "s", LedgerId: "l", Code: "c", Issuer: "i"}},
		&harnessv1.DescribeServerSignInRequest{Namespace: "default", Subject: webSubject(), Local: true},
		&harnessv1.EndServerSignInRequest{Namespace: "default", Subject: webSubject(), Local: true},
		&harnessv1.StartServerSignInRequest{Namespace: "n", Subject: webSubject()},
	}
	if !slices.EqualFunc(host.received, want, proto.Equal) {
		t.Errorf("%v, want %v", host.received, want)
	}
}

// TestSignInsAreChecked: a request that cannot be a sign-in names its field.
func TestSignInsAreChecked(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) { c.SignIns = &signInHost{} })
	for want, change := range map[string]func(*harnessv1.SignInSubject){
		"subject.server.name": func(s *harnessv1.SignInSubject) { s.Server.Name = "a b" },
		"subject.server.url":  func(s *harnessv1.SignInSubject) { s.Server = &harnessv1.McpServer{Name: "web", Command: "cat"} },
		"subject.server.oauth.client_secret": func(s *harnessv1.SignInSubject) {
			s.Server.Oauth = &harnessv1.McpOAuth{ClientId: "x", ClientSecret: "in the clear"}
		},
		"subject.server.oauth.client_id": func(s *harnessv1.SignInSubject) { s.Server.Oauth = &harnessv1.McpOAuth{ClientSecret: "${X}"} },
		"subject.server.oauth.scopes[0]": func(s *harnessv1.SignInSubject) { s.Server.Oauth = &harnessv1.McpOAuth{Scopes: []string{"a b"}} },
		"subject.variables":              func(s *harnessv1.SignInSubject) { s.Variables = map[string]string{"A-B": ""} },
	} {
		subject := webSubject()
		change(subject)
		_, err := b.client.StartSignIn(b.ctx, &harnessv1.StartSignInRequest{Subject: subject})
		if status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), want+": ") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := b.client.FinishSignIn(b.ctx, &harnessv1.FinishSignInRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a state: %v", err)
	}
	without := newBed(t)
	if _, err := without.client.GetSignIn(b.ctx, &harnessv1.GetSignInRequest{Subject: webSubject()}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without a tool host: %v", err)
	}
}

// TestSignInsAtSeveralToolHosts: each tool host is called by its ledger; one that is away has an
// error, and the others count.
func TestSignInsAtSeveralToolHosts(t *testing.T) {
	host := &hostsByLedger{}
	b := newBed(t, func(c *gatewayserver.Config) {
		c.SignIns = host
		c.ToolHosts = func(context.Context) ([]*harnessv1.SignInHost, error) {
			return []*harnessv1.SignInHost{{LedgerId: "c", Instance: "third"}, {LedgerId: "b", Instance: "second"}, {LedgerId: "a", Instance: "first"}}, nil
		}
	})
	got, err := b.client.GetSignIn(b.ctx, &harnessv1.GetSignInRequest{Subject: webSubject()})
	b.must(err)
	want := &harnessv1.GetSignInResponse{
		State: &harnessv1.SignInState{},
		Hosts: []*harnessv1.SignInHost{
			{LedgerId: "a", Instance: "first", State: &harnessv1.SignInState{SignedIn: true}}, {LedgerId: "b", Instance: "second", Error: "away"},
			{LedgerId: "c", Instance: "third", State: &harnessv1.SignInState{}},
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("%v", got)
	}
	out, err := b.client.SignOut(b.ctx, &harnessv1.SignOutRequest{Subject: webSubject()})
	b.must(err)
	if !out.GetRemoved() || out.GetHosts()[1].GetError() != "away" || len(out.GetHosts()) != 3 {
		t.Errorf("%v", out)
	}
	start := func(ledger string) error {
		_, err := b.client.StartSignIn(b.ctx, &harnessv1.StartSignInRequest{Subject: webSubject(), LedgerId: ledger})
		return err
	}
	if err := start("d"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `no tool host with the ledger "d"`) {
		t.Errorf("%v", err)
	}
	b.must(start("c"))
	if r, _ := host.received[len(host.received)-1].(*harnessv1.StartServerSignInRequest); r.GetLedgerId() != "c" {
		t.Errorf("%v", r)
	}
}

// hostsByLedger are the hosts a, which is signed in, b, which is away, and c.
type hostsByLedger struct{ signInHost }

func (*hostsByLedger) DescribeServerSignIn(_ context.Context, r *harnessv1.DescribeServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.DescribeServerSignInResponse, error) {
	if r.GetLedgerId() == "b" {
		return nil, status.Error(codes.Unavailable, "away")
	}
	return &harnessv1.DescribeServerSignInResponse{State: &harnessv1.SignInState{SignedIn: r.GetLedgerId() == "a"}}, nil
}

func (*hostsByLedger) EndServerSignIn(_ context.Context, r *harnessv1.EndServerSignInRequest, _ ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error) {
	if r.GetLedgerId() == "b" {
		return nil, status.Error(codes.Unavailable, "away")
	}
	return &harnessv1.EndServerSignInResponse{Removed: r.GetLedgerId() == "a"}, nil
}
