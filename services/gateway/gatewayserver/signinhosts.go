package gatewayserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hostTime bounds a call of one of several tool hosts that needs no authorization server.
const hostTime = 10 * time.Second

// everyHost calls each tool host of the mesh at the same time. The error is that of a single host,
// or that of the first if none has succeeded; other errors are those of the hosts.
func (s *Server) everyHost(ctx context.Context, call func(ctx context.Context, ledger string) (*harnessv1.SignInState, error)) ([]*harnessv1.SignInHost, error) {
	hosts, err := s.signInHosts(ctx)
	if err != nil {
		return nil, err
	}
	failures := make([]error, len(hosts))
	done := make(chan struct{})
	for i, host := range hosts {
		go func() {
			host.State, failures[i] = call(ctx, host.GetLedgerId())
			done <- struct{}{}
		}()
	}
	for range hosts {
		<-done
	}
	failed := 0
	for i, err := range failures {
		if err != nil {
			failed++
			hosts[i].State, hosts[i].Error = nil, status.Convert(err).Message()
		}
	}
	if failed == len(hosts) {
		return nil, failures[0]
	}
	return hosts, nil
}

// signInHosts returns the tool hosts of the mesh by name; a mesh that is one process has one
// without a name.
func (s *Server) signInHosts(ctx context.Context) ([]*harnessv1.SignInHost, error) {
	if s.toolHosts == nil {
		return []*harnessv1.SignInHost{{}}, nil
	}
	hosts, err := s.toolHosts(ctx)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
			"no tool host answers: start `harness serve --roles toolhost`, or wait until it is ready")
	}
	slices.SortFunc(hosts, func(a, b *harnessv1.SignInHost) int { return cmp.Compare(a.GetInstance(), b.GetInstance()) })
	return hosts, nil
}

// weakest returns the sign-in that lasts the shortest time: none, then one that is not renewed. A
// host that has not answered does not count.
func weakest(hosts []*harnessv1.SignInHost) *harnessv1.SignInState {
	rank := func(s *harnessv1.SignInState) int {
		switch {
		case !s.GetSignedIn():
			return 0
		case !s.GetRenewed():
			return 1
		}
		return 2
	}
	var least *harnessv1.SignInState
	for _, host := range hosts {
		if state := host.GetState(); state != nil && (least == nil || rank(state) < rank(least)) {
			least = state
		}
	}
	return least
}

// checkHost returns an error for a tool host that is not in the mesh.
func (s *Server) checkHost(ctx context.Context, ledger string) error {
	if ledger == "" || s.toolHosts == nil {
		return nil
	}
	hosts, err := s.signInHosts(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(hosts, func(h *harnessv1.SignInHost) bool { return h.GetLedgerId() == ledger }) {
		return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
			fmt.Sprintf("no tool host with the ledger %.64q answers: GetSignIn lists those that do", ledger))
	}
	return nil
}
