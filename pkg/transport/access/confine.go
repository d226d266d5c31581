package access

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// namespacesKey is the header that confines lists of all namespaces to some. It only
// removes rights: a caller that sets it without a token sees less, and if tokens are
// checked, the token's namespaces replace it.
const namespacesKey = "harness-namespaces"

// confined adds the namespaces of the caller to the context of its handler.
func confined(ctx context.Context, c Caller) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	delete(md, namespacesKey)
	delete(md, "authorization") // already checked
	if c.Namespaces != nil {
		md.Set(namespacesKey, strings.Join(c.Namespaces, ","))
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

// Confine makes a connection inside this process obey the token that Guard.HTTP put into
// the context of a call, so that a translator of requests into calls needs no code for
// tokens.
func Confine(conn grpc.ClientConnInterface) grpc.ClientConnInterface { return within{conn} }

type within struct{ grpc.ClientConnInterface }

func (w within) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := check(of(ctx), method, args); err != nil {
		return err
	}
	return w.ClientConnInterface.Invoke(outgoing(ctx), method, args, reply, opts...)
}

func (w within) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := w.ClientConnInterface.NewStream(outgoing(ctx), desc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &sendStream{ClientStream: stream, caller: of(ctx), method: method}, nil
}

func outgoing(ctx context.Context) context.Context {
	if c := of(ctx); c.Namespaces != nil {
		return metadata.AppendToOutgoingContext(ctx, namespacesKey, strings.Join(c.Namespaces, ","))
	}
	return ctx
}

// sendStream checks the first message of a stream.
type sendStream struct {
	grpc.ClientStream
	caller  Caller
	method  string
	checked bool
}

func (s *sendStream) SendMsg(m any) error {
	if !s.checked {
		if err := check(s.caller, s.method, m); err != nil {
			return err
		}
		s.checked = true
	}
	return s.ClientStream.SendMsg(m)
}
