package access

import (
	"context"

	"google.golang.org/grpc/credentials"
)

// Bearer returns credentials that add a token to every call. plain allows connections
// without TLS, for calls that stay on this machine.
func Bearer(token string, plain bool) credentials.PerRPCCredentials {
	return bearer{token: token, plain: plain}
}

type bearer struct {
	token string
	plain bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return !b.plain }
