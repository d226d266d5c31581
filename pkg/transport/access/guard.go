package access

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Guard admits callers that have a token, and requests that are within limits.
type Guard struct {
	tokens  *Tokens
	unnamed string // the name of callers without a token
	limits  Limits
	applies func(ctx context.Context, method string) bool // nil: to all calls
}

// NewGuard returns a guard; nil tokens admit every caller, as Local.
func NewGuard(tokens *Tokens) *Guard { return &Guard{tokens: tokens, unnamed: Local} }

// OpenGuard returns a guard that admits every caller, as Anonymous.
func OpenGuard() *Guard { return &Guard{unnamed: Anonymous} }

// Only returns a guard that leaves alone the calls for which applies is false: a server may
// have a listener, or services, for callers that another guard admits. The context has the
// peer and the headers of the call.
func (g *Guard) Only(applies func(ctx context.Context, method string) bool) *Guard {
	only := *g
	only.applies = applies
	return &only
}

// Within returns a guard that refuses requests beyond limits, whatever their token.
func (g *Guard) Within(limits Limits) *Guard {
	within := *g
	within.limits = limits
	return &within
}

// open reports whether a call needs no token.
func (g *Guard) open(ctx context.Context, method string) bool {
	return strings.HasPrefix(method, healthPrefix) || g.applies != nil && !g.applies(ctx, method)
}

// ServerOptions check that each call has a token, that the token is valid for the
// namespace of the request, and that the request is within the limits; of a Run stream,
// the first message has the namespace. grpc.health.v1.Health needs no token.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(g.tap), grpc.ChainUnaryInterceptor(g.unary), grpc.ChainStreamInterceptor(g.stream),
	}
}

// tap refuses a call without a token before its message is received. Interceptors run
// only after the message is decompressed, which may take a thousand times its size on
// the wire.
func (g *Guard) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	if g.open(ctx, call.FullMethodName) {
		return ctx, nil
	}
	_, err := g.admit(call.Header.Get("authorization"))
	return ctx, err
}

const healthPrefix = "/grpc.health.v1.Health/"

func (g *Guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if g.open(ctx, info.FullMethod) {
		return next(ctx, req)
	}
	admitted, err := g.admit(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err == nil {
		err = g.check(admitted.caller, info.FullMethod, req)
	}
	if err != nil {
		return nil, err
	}
	return next(confined(ctx, admitted.caller), req)
}

func (g *Guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx := stream.Context()
	if g.open(ctx, info.FullMethod) {
		return next(srv, stream)
	}
	admitted, err := g.admit(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		return err
	}
	ctx, release, err := g.hold(ctx, admitted, false)
	if err != nil {
		return err
	}
	defer release()
	err = next(srv, &guardedStream{
		ServerStream: stream, ctx: confined(ctx, admitted.caller), messages: g.messages(admitted.caller, info.FullMethod), admitted: admitted,
	})
	if end := endOf(ctx); end != nil {
		return end
	}
	return err
}

// guardedStream checks the messages that a stream receives, and passes none once its context
// has ended. A message is refused as soon as the line of the token is removed or changed, like a call.
type guardedStream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // a stream has a context
	messages *messages
	admitted entry
}

func (s *guardedStream) Context() context.Context { return s.ctx }

func (s *guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if end := endOf(s.ctx); end != nil {
		return end
	}
	if err := s.messages.guard.confirm(s.admitted); err != nil {
		return err
	}
	return s.messages.check(m)
}

func (s *guardedStream) SendMsg(m any) error {
	if end := endOf(s.ctx); end != nil {
		return end
	}
	return s.ServerStream.SendMsg(m)
}

// messages checks the messages of a stream: the first one has the namespace.
type messages struct {
	guard   *Guard
	caller  Caller
	method  string
	started bool
}

func (g *Guard) messages(c Caller, method string) *messages {
	return &messages{guard: g, caller: c, method: method}
}

func (s *messages) check(m any) error {
	if !s.started {
		s.started = true
		return s.guard.check(s.caller, s.method, m)
	}
	if err := checkRights(s.caller, m); err != nil {
		return err
	}
	return s.guard.limits.check(s.caller, m)
}

// admit returns the token in the values of the authorization header, with its caller. Without
// tokens every caller may do everything.
func (g *Guard) admit(headers []string) (entry, error) {
	if g.tokens == nil {
		return entry{caller: Caller{Name: g.unnamed}}, nil
	}
	if len(headers) == 0 {
		return entry{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "a token is missing: send `authorization: Bearer TOKEN` with "+g.tokens.where)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "bearer") {
		return entry{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "authorization is not `Bearer TOKEN`: send it once, with "+g.tokens.where)
	}
	found, ok := g.tokens.find(strings.TrimSpace(token))
	if !ok {
		return entry{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_UNKNOWN, "the gateway does not know this token: it may be mistyped or withdrawn; send "+g.tokens.where)
	}
	return found, nil
}

// reflection is the prefix of the methods that any token may call.
const reflection = "/grpc.reflection."

// check refuses a request for a namespace that the token is not valid for, for which it
// lacks a right, or that is beyond the limits.
func (g *Guard) check(c Caller, method string, req any) error {
	if err := checkService(c, method); err != nil {
		return err
	}
	if err := checkNamespace(c, method, req); err != nil {
		return err
	}
	if err := checkRights(c, req); err != nil {
		return err
	}
	if err := g.limits.check(c, req); err != nil {
		return err
	}
	return g.checkQuota(c, req)
}

func checkNamespace(c Caller, method string, req any) error {
	if c.Namespaces == nil || strings.HasPrefix(method, reflection) {
		return nil
	}
	namespace, known := namespaceOf(req)
	switch {
	case !known:
		return forbidden(c, "this request names no namespace")
	case namespace == all && lists(req):
		return nil // the handler shows the token's own
	case namespace == "":
		namespace = "default"
	}
	if !c.May(namespace) {
		return forbidden(c, fmt.Sprintf("the token is not for namespace %q", namespace))
	}
	return nil
}

func forbidden(c Caller, what string) error {
	return refuse(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_NAMESPACE_FORBIDDEN, fmt.Sprintf("%s: it is for %s", what, strings.Join(c.Namespaces, ", ")))
}

// all is the namespace that means every namespace in lists.
const all = "*"

// namespaceOf returns the namespace of a request, empty for the default one. known is
// false for a request without a namespace.
func namespaceOf(req any) (namespace string, known bool) {
	if run, ok := req.(*harnessv1.RunRequest); ok {
		switch first := run.GetRequest().(type) {
		case *harnessv1.RunRequest_Start:
			return first.Start.GetNamespace(), true
		case *harnessv1.RunRequest_Attach:
			return first.Attach.GetNamespace(), true
		}
		return "", false
	}
	if r, ok := req.(interface{ GetNamespace() string }); ok {
		return r.GetNamespace(), true
	}
	return "", false
}

// lists reports whether a request may ask for all namespaces, of which a token sees its
// own.
func lists(req any) bool {
	switch req.(type) {
	case *harnessv1.ListRunsRequest, *harnessv1.ListPendingRequest, *harnessv1.WatchRunsRequest:
		return true
	}
	return false
}

// refuse returns the error of a refusal, as a gRPC status.
func refuse(code codes.Code, reason harnessv1.ErrorReason, message string) error {
	st, _ := fault.Status(fault.New(code, reason, message))
	return st.Err()
}
