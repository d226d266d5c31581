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

// Guard admits callers that have a token.
type Guard struct {
	tokens *Tokens
}

// NewGuard returns a guard; nil tokens admit every caller.
func NewGuard(tokens *Tokens) *Guard { return &Guard{tokens: tokens} }

// ServerOptions check that each call has a token and that the token is valid for the
// namespace of the request; of a Run stream, the first message has the namespace.
// grpc.health.v1.Health needs no token.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	if g.tokens == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.InTapHandle(g.tap), grpc.ChainUnaryInterceptor(g.unary), grpc.ChainStreamInterceptor(g.stream),
	}
}

// tap refuses a call without a token before its message is received. Interceptors run
// only after the message is decompressed, which may take a thousand times its size on
// the wire.
func (g *Guard) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	if strings.HasPrefix(call.FullMethodName, healthPrefix) {
		return ctx, nil
	}
	_, err := g.caller(call.Header.Get("authorization"))
	return ctx, err
}

const healthPrefix = "/grpc.health.v1.Health/"

func (g *Guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if strings.HasPrefix(info.FullMethod, healthPrefix) {
		return next(ctx, req)
	}
	caller, err := g.caller(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err == nil {
		err = check(caller, info.FullMethod, req)
	}
	if err != nil {
		return nil, err
	}
	return next(confined(ctx, caller), req)
}

func (g *Guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, healthPrefix) {
		return next(srv, stream)
	}
	ctx := stream.Context()
	caller, err := g.caller(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		return err
	}
	return next(srv, &guardedStream{ServerStream: stream, ctx: confined(ctx, caller), caller: caller, method: info.FullMethod})
}

// guardedStream checks the first message of a stream.
type guardedStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // a stream has a context
	caller  Caller
	method  string
	checked bool
}

func (s *guardedStream) Context() context.Context { return s.ctx }

func (s *guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if s.checked {
		return nil
	}
	s.checked = true
	return check(s.caller, s.method, m)
}

// caller returns the caller of a token in the values of the authorization header.
func (g *Guard) caller(headers []string) (Caller, error) {
	if len(headers) == 0 {
		return Caller{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "a token is missing: send `authorization: Bearer TOKEN` with a token of the gateway's --tokens file")
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "bearer") {
		return Caller{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "authorization is not `Bearer TOKEN`: send it once, with a token of the gateway's --tokens file")
	}
	caller, ok := g.tokens.Find(strings.TrimSpace(token))
	if !ok {
		return Caller{}, refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_UNKNOWN, "the gateway does not know this token: it may be mistyped or withdrawn; ask for one of its --tokens file")
	}
	return caller, nil
}

// reflection is the prefix of the methods that any token may call.
const reflection = "/grpc.reflection."

// check refuses a request for a namespace that the token is not valid for.
func check(c Caller, method string, req any) error {
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
