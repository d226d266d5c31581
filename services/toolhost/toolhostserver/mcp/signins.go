package mcp

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// signInTimeout bounds a half of a sign-in.
const signInTimeout = 60 * time.Second

// StartSignIn begins a sign-in at a server.
func (s *Servers) StartSignIn(ctx context.Context, req *harnessv1.StartServerSignInRequest) (*harnessv1.StartServerSignInResponse, error) {
	account, err := s.accountOf(req.GetNamespace(), req.GetSubject(), req.GetLocal())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	begun, err := s.signIns.Start(ctx, account, req.GetRedirectUri())
	if err != nil {
		return nil, notSignedIn(req.GetSubject(), err)
	}
	return &harnessv1.StartServerSignInResponse{Start: &harnessv1.SignInStart{
		AuthorizationUrl: begun.Address, State: begun.State, LedgerId: s.config.LedgerID, Valid: durationpb.New(signin.Valid),
	}}, nil
}

// FinishSignIn completes a sign-in.
func (s *Servers) FinishSignIn(ctx context.Context, req *harnessv1.FinishServerSignInRequest) (*harnessv1.FinishServerSignInResponse, error) {
	if err := ledger.CheckName("namespace", req.GetNamespace()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signInTimeout) // a code can be used once
	defer cancel()
	r := req.GetReturned()
	state, err := s.signIns.Finish(ctx, req.GetNamespace(), signin.Return{State: r.GetState(), Code: r.GetCode(), Issuer: r.GetIssuer(), Error: r.GetError()})
	if err != nil {
		return nil, notSignedIn(nil, err)
	}
	return &harnessv1.FinishServerSignInResponse{State: signInState(state)}, nil
}

// DescribeSignIn returns whether there is a token for a server.
func (s *Servers) DescribeSignIn(req *harnessv1.DescribeServerSignInRequest) (*harnessv1.DescribeServerSignInResponse, error) {
	account, err := s.accountOf(req.GetNamespace(), req.GetSubject(), req.GetLocal())
	if err != nil {
		return nil, err
	}
	state, err := s.signIns.State(account)
	if err != nil {
		return nil, notSignedIn(req.GetSubject(), err)
	}
	return &harnessv1.DescribeServerSignInResponse{State: signInState(state)}, nil
}

// EndSignIn removes the token for a server.
func (s *Servers) EndSignIn(ctx context.Context, req *harnessv1.EndServerSignInRequest) (*harnessv1.EndServerSignInResponse, error) {
	account, err := s.accountOf(req.GetNamespace(), req.GetSubject(), req.GetLocal())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	removed, err := s.signIns.Out(ctx, account)
	if err != nil {
		return nil, notSignedIn(req.GetSubject(), err)
	}
	return &harnessv1.EndServerSignInResponse{Removed: removed}, nil
}

// accountOf returns the account that a request names.
func (s *Servers) accountOf(namespace string, subject *harnessv1.SignInSubject, local bool) (signin.Account, error) {
	if err := ledger.CheckName("namespace", namespace); err != nil {
		return signin.Account{}, err
	}
	account, err := mcpclient.AccountOf(namespace, subject.GetServer(), local, func(text string) (string, error) {
		return mcptool.Expand(text, func(name string) (string, bool) {
			if slices.Contains(s.config.Withheld, name) {
				return "", false
			}
			if value, given := subject.GetVariables()[name]; given {
				return value, true
			}
			if !local {
				return "", false
			}
			return lookUp(os.Environ(), name)
		})
	})
	if err != nil {
		return account, notSignedIn(subject, err)
	}
	return account, nil
}

// notSignedIn returns the error of a sign-in, in one line for the person.
func notSignedIn(subject *harnessv1.SignInSubject, err error) error {
	text := err.Error()
	if subject != nil {
		text = fmt.Sprintf("server %s: %s", subject.GetServer().GetName(), text)
	}
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, text)
}

func signInState(s signin.State) *harnessv1.SignInState {
	state := &harnessv1.SignInState{SignedIn: s.SignedIn, Renewed: s.Renewed, Issuer: s.Issuer, Scopes: s.Scopes, Lacked: s.Lacked}
	if s.Valid > 0 {
		state.Valid = durationpb.New(s.Valid)
	}
	return state
}
