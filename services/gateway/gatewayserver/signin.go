package gatewayserver

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// SignIns is the part of a tool host at which persons sign in at servers of tools.
type SignIns interface {
	StartServerSignIn(context.Context, *harnessv1.StartServerSignInRequest, ...grpc.CallOption) (*harnessv1.StartServerSignInResponse, error)
	FinishServerSignIn(context.Context, *harnessv1.FinishServerSignInRequest, ...grpc.CallOption) (*harnessv1.FinishServerSignInResponse, error)
	DescribeServerSignIn(context.Context, *harnessv1.DescribeServerSignInRequest, ...grpc.CallOption) (*harnessv1.DescribeServerSignInResponse, error)
	EndServerSignIn(context.Context, *harnessv1.EndServerSignInRequest, ...grpc.CallOption) (*harnessv1.EndServerSignInResponse, error)
}

// signInTimeout bounds a call of the tool host, which calls an authorization server.
const signInTimeout = 70 * time.Second

// signIn checks a request, and returns its namespace and a context for the call of the tool host.
func (s *Server) signIn(ctx context.Context, namespace string, subject *harnessv1.SignInSubject) (string, context.Context, context.CancelFunc, error) {
	namespace, err := namespaceOf(namespace)
	if err == nil && subject != nil {
		err = fault.In("subject", gateway.CheckSignIn(subject))
	}
	if err == nil && s.signIns == nil {
		err = fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, "this gateway has no tool host, which signs in at servers: use another --server, or the data directory of a mesh that works")
	}
	if err != nil {
		return "", nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	return namespace, ctx, cancel, nil
}

// StartSignIn begins a sign-in at a server of tools. A caller that is a local person may name a
// private address.
func (s *Server) StartSignIn(ctx context.Context, r *harnessv1.StartSignInRequest) (*harnessv1.StartSignInResponse, error) {
	namespace, call, cancel, err := s.signIn(ctx, r.GetNamespace(), orEmpty(r.GetSubject()))
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := s.checkHost(call, r.GetLedgerId()); err != nil {
		return nil, err
	}
	response, err := s.signIns.StartServerSignIn(call, &harnessv1.StartServerSignInRequest{
		Namespace: namespace, Subject: r.GetSubject(), RedirectUri: r.GetRedirectUri(), Local: access.IsPerson(access.Name(ctx)), LedgerId: r.GetLedgerId(),
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.StartSignInResponse{Start: response.GetStart()}, nil
}

// FinishSignIn completes a sign-in.
func (s *Server) FinishSignIn(ctx context.Context, r *harnessv1.FinishSignInRequest) (*harnessv1.FinishSignInResponse, error) {
	namespace, call, cancel, err := s.signIn(ctx, r.GetNamespace(), nil)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if r.GetReturned().GetState() == "" {
		return nil, fault.Invalid("returned.state", "missing: expected the state of a sign-in that was begun")
	}
	if err := s.checkHost(call, r.GetReturned().GetLedgerId()); err != nil {
		return nil, err
	}
	response, err := s.signIns.FinishServerSignIn(call, &harnessv1.FinishServerSignInRequest{Namespace: namespace, Returned: r.GetReturned()})
	if err != nil {
		return nil, err
	}
	return &harnessv1.FinishSignInResponse{State: response.GetState()}, nil
}

// GetSignIn returns whether runs are signed in at a server of tools, at each tool host.
func (s *Server) GetSignIn(ctx context.Context, r *harnessv1.GetSignInRequest) (*harnessv1.GetSignInResponse, error) {
	namespace, call, cancel, err := s.signIn(ctx, r.GetNamespace(), orEmpty(r.GetSubject()))
	if err != nil {
		return nil, err
	}
	defer cancel()
	local := access.IsPerson(access.Name(ctx))
	hosts, err := s.everyHost(call, func(ctx context.Context, ledger string) (*harnessv1.SignInState, error) {
		ctx, cancel := context.WithTimeout(ctx, hostTime)
		defer cancel()
		response, err := s.signIns.DescribeServerSignIn(ctx, &harnessv1.DescribeServerSignInRequest{
			Namespace: namespace, Subject: r.GetSubject(), Local: local, LedgerId: ledger,
		})
		return response.GetState(), err
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.GetSignInResponse{State: weakest(hosts), Hosts: hosts}, nil
}

// SignOut removes the tokens for a server of tools, at all tool hosts.
func (s *Server) SignOut(ctx context.Context, r *harnessv1.SignOutRequest) (*harnessv1.SignOutResponse, error) {
	namespace, call, cancel, err := s.signIn(ctx, r.GetNamespace(), orEmpty(r.GetSubject()))
	if err != nil {
		return nil, err
	}
	defer cancel()
	local := access.IsPerson(access.Name(ctx))
	var removed atomic.Bool
	hosts, err := s.everyHost(call, func(ctx context.Context, ledger string) (*harnessv1.SignInState, error) {
		response, err := s.signIns.EndServerSignIn(ctx, &harnessv1.EndServerSignInRequest{
			Namespace: namespace, Subject: r.GetSubject(), Local: local, LedgerId: ledger,
		})
		if response.GetRemoved() {
			removed.Store(true)
		}
		return &harnessv1.SignInState{}, err
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.SignOutResponse{Removed: removed.Load(), Hosts: hosts}, nil
}

// orEmpty returns a subject that is checked also if the request has none.
func orEmpty(subject *harnessv1.SignInSubject) *harnessv1.SignInSubject {
	if subject == nil {
		return &harnessv1.SignInSubject{}
	}
	return subject
}
