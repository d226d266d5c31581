package access

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// namespacesKey is the header that confines lists of all namespaces to some. It only
// removes rights: a caller that sets it without a token sees less, and if tokens are
// checked, the token's namespaces replace it.
const namespacesKey = "harness-namespaces"

// nameKey is the header with the name of the caller. It grants nothing.
const nameKey = "harness-caller"

// approvalsKey is the header of callers without the right Approve. It only removes rights.
const approvalsKey = "harness-no-approvals"

// tokenKey is the header of callers with a token of the tokens file: leaves if their runs may leave the
// sandbox, else bounded. It only removes rights: a caller without a token that sends it gets runs
// that are more confined, and confined replaces that of a caller with a token.
const (
	tokenKey     = "harness-token"
	tokenLeaves  = "leaves"
	tokenBounded = "bounded"
)

// rootsKey is the header with the folders of a token's line, a value each. It only removes rights. It
// is binary, because a path has any bytes.
const rootsKey = "harness-roots-bin"

// entitlementsKey and tierKey are the headers with the entitlements and the tier of a token's line. They come
// from the guard alone: confined removes those of a caller.
const (
	entitlementsKey = "harness-entitlements"
	tierKey         = "harness-tier"
)

// quotasKey is the header with the quotas of runs and bytes of a token's line. It only removes rights, and confined
// replaces that of a caller with a token.
const quotasKey = "harness-quotas"

// confined adds the namespaces of the caller to the context of its handler.
func confined(ctx context.Context, c Caller) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	delete(md, namespacesKey)
	delete(md, "authorization") // already checked
	delete(md, entitlementsKey)
	delete(md, tierKey)
	delete(md, rootsKey)
	if c.Roots != nil {
		md.Set(rootsKey, c.Roots...)
	}
	if len(c.Entitlements) > 0 {
		md.Set(entitlementsKey, strings.Join(c.Entitlements, ","))
	}
	if c.Tier != "" {
		md.Set(tierKey, c.Tier)
	}
	md.Set(nameKey, c.Name)
	if c.Namespaces != nil {
		md.Set(namespacesKey, strings.Join(c.Namespaces, ","))
	}
	if !c.has(Approve) {
		md.Set(approvalsKey, "true")
	}
	if c.token() {
		md.Set(tokenKey, c.tokenValue())
		md.Set(quotasKey, c.quotasValue())
	}
	return metadata.NewIncomingContext(with(ctx, c), md)
}

// Namespaces returns the namespaces that a list of all namespaces may show to the
// caller; nil means all.
func Namespaces(ctx context.Context) []string {
	header := metadata.ValueFromIncomingContext(ctx, namespacesKey)
	if len(header) == 0 {
		return nil
	}
	return strings.Split(header[0], ",")
}

// Approves reports whether the caller may approve calls.
func Approves(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, approvalsKey)) == 0
}

// MayAnswerHooks refuses a caller without the right Approve that wants to answer the hooks of a run that another token
// has started: such an answer permits calls. field is the field of the request that asks for them, and startedBy the name in
// the records of the run.
func MayAnswerHooks(ctx context.Context, field, startedBy string) error {
	if Approves(ctx) || Name(ctx) == startedBy {
		return nil
	}
	return lacks(Approve, field, "answers hooks of a run that the token has not started")
}

// Token reports whether the caller has a token of the tokens file, and whether its runs may leave
// the sandbox if their requests name that.
func Token(ctx context.Context) (token, leaves bool) {
	header := metadata.ValueFromIncomingContext(ctx, tokenKey)
	return len(header) > 0, len(header) == 1 && header[0] == tokenLeaves
}

// Entitlements returns the entitlements in the line of the caller's token.
func Entitlements(ctx context.Context) []string {
	header := metadata.ValueFromIncomingContext(ctx, entitlementsKey)
	if len(header) == 0 {
		return nil
	}
	return strings.Split(header[0], ",")
}

// Roots returns the folders that the line of the caller's token names; nil: it is for all.
func Roots(ctx context.Context) []string { return metadata.ValueFromIncomingContext(ctx, rootsKey) }

// StoredQuotas returns the quotas of runs at work and of stored bytes of the caller's token; zeros: it has none.
func StoredQuotas(ctx context.Context) Quotas {
	var q Quotas
	if header := metadata.ValueFromIncomingContext(ctx, quotasKey); len(header) > 0 {
		runs, bytes, _ := strings.Cut(header[0], ",")
		q.Runs, _ = strconv.Atoi(runs)
		q.Bytes, _ = strconv.Atoi(bytes)
	}
	return q
}

// Tier returns the tier of the line of the caller's token; empty: the default one.
func Tier(ctx context.Context) string {
	header := metadata.ValueFromIncomingContext(ctx, tierKey)
	if len(header) == 0 {
		return ""
	}
	return header[0]
}

// Name returns the name of the caller for logs and records: that of the token's line, or
// Local or Anonymous.
func Name(ctx context.Context) string {
	header := metadata.ValueFromIncomingContext(ctx, nameKey)
	if len(header) == 0 || header[0] == "" {
		return Local
	}
	return header[0]
}

// Confine makes a connection inside this process obey the guard, with the token that
// Guard.HTTP put into the context of a call, so that a translator of requests into calls
// needs no code for tokens.
func (g *Guard) Confine(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return within{conn, g}
}

type within struct {
	grpc.ClientConnInterface
	guard *Guard
}

func (w within) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := w.guard.check(of(ctx), method, args); err != nil {
		return err
	}
	err := w.ClientConnInterface.Invoke(outgoing(ctx), method, args, reply, opts...)
	if end := endOf(ctx); end != nil && err != nil {
		return end
	}
	return err
}

func (w within) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := w.ClientConnInterface.NewStream(outgoing(ctx), desc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &sendStream{ClientStream: stream, messages: w.guard.messages(of(ctx), method), end: func() error { return endOf(ctx) }}, nil
}

// RecvMsg returns why the stream has ended, if hold has ended it.
func (s *sendStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if end := s.end(); end != nil && err != nil {
		return end
	}
	return err
}

func outgoing(ctx context.Context) context.Context {
	c := of(ctx)
	if c.Name != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, nameKey, c.Name)
	}
	if c.Namespaces != nil {
		ctx = metadata.AppendToOutgoingContext(ctx, namespacesKey, strings.Join(c.Namespaces, ","))
	}
	if len(c.Entitlements) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, entitlementsKey, strings.Join(c.Entitlements, ","))
	}
	if c.Tier != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, tierKey, c.Tier)
	}
	if c.Roots != nil {
		var roots []string
		for _, root := range c.Roots {
			roots = append(roots, rootsKey, root)
		}
		ctx = metadata.AppendToOutgoingContext(ctx, roots...)
	}
	if !c.has(Approve) {
		ctx = metadata.AppendToOutgoingContext(ctx, approvalsKey, "true")
	}
	if c.token() {
		ctx = metadata.AppendToOutgoingContext(ctx, tokenKey, c.tokenValue(), quotasKey, c.quotasValue())
	}
	return ctx
}

// sendStream checks the messages that a stream sends.
type sendStream struct {
	grpc.ClientStream
	messages *messages
	end      func() error // why hold has ended it
}

func (s *sendStream) SendMsg(m any) error {
	if err := s.messages.check(m); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}
