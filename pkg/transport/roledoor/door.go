// Package roledoor decides which processes may call the services of the roles of a mesh:
// the tool host and the executors.
//
// Between processes a caller presents either a certificate of the mesh, which may name its
// roles, or on one machine a token that it derives from the key of the mesh. A certificate
// with roles admits to the methods that these roles call, see MayCall; one without admits
// to all of them and is warned of. The gateway has its own tokens, see package access.
package roledoor

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Config configures a Door. The zero Config admits no caller.
type Config struct {
	// Open admits every caller.
	Open bool
	// Tokens are the bearer tokens that are admitted: the key of the mesh, and the token
	// that callers derive from it.
	Tokens []string
	// Live returns more tokens, which may change; may be nil.
	Live func() []string
	// Where completes "send" in the error of a caller without a token. It names no path: each
	// user of the machine can read it.
	Where string
	// File has the key of the mesh. It is logged with the first refusal, and is in no error.
	File string
	// Certificates: the transport has verified the certificates that callers present.
	Certificates bool
	// Logger gets a warning for each certificate without a role; nil discards.
	Logger *slog.Logger
}

// Door admits the callers of the services of roles. It is safe for concurrent use.
type Door struct {
	cfg Config

	mu     sync.Mutex
	warned map[[sha256.Size]byte]bool
	told   sync.Once
}

func New(cfg Config) *Door {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Door{cfg: cfg, warned: map[[sha256.Size]byte]bool{}}
}

// admit returns why a call is refused. ctx has the peer of the call, and authorization the
// values of its header.
func (d *Door) admit(ctx context.Context, method string, authorization []string) error {
	switch {
	case d.cfg.Open, open(method):
		return nil
	case len(authorization) > 0:
		err := d.token(authorization)
		if err != nil {
			d.logRefusal(method)
		}
		return err
	}
	if cert := d.certificate(ctx); cert != nil {
		return d.role(ctx, cert, method)
	}
	d.logRefusal(method)
	return refuse(harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "a token is missing: the services of roles are for the processes of the mesh; send "+d.where())
}

// Takes reports whether a call is for this door to judge at a server that has a gateway
// too: a call of a service of a role by a caller that presents a certificate, or a token of
// the mesh. The gateway's tokens admit to these services too.
func (d *Door) Takes(ctx context.Context, method string) bool {
	if RoleOf(method) == "" {
		return false
	}
	authorization := metadata.ValueFromIncomingContext(ctx, "authorization")
	switch {
	case d.cfg.Open:
		return true
	case len(authorization) > 0:
		return d.token(authorization) == nil
	}
	return d.certificate(ctx) != nil
}

// logRefusal logs the first refusal, with the file that the caller needs.
func (d *Door) logRefusal(method string) {
	if d.cfg.File != "" {
		d.told.Do(func() {
			d.cfg.Logger.Warn("a call without the key of the mesh, or with another one, is refused; this is logged once", "method", method, "key_file", d.cfg.File)
		})
	}
}

func (d *Door) where() string {
	if d.cfg.Certificates {
		return "a certificate of the mesh (--tls-cert, --tls-key and --tls-ca on all roles)"
	}
	return d.cfg.Where
}

// token admits a bearer token.
func (d *Door) token(authorization []string) error {
	scheme, token, _ := strings.Cut(authorization[0], " ")
	if len(authorization) > 1 || !strings.EqualFold(scheme, "bearer") {
		return refuse(harnessv1.ErrorReason_ERROR_REASON_TOKEN_MISSING, "authorization is not `Bearer TOKEN`: send it once, with "+d.where())
	}
	found := false
	tokens := d.cfg.Tokens
	if d.cfg.Live != nil {
		tokens = slices.Concat(tokens, d.cfg.Live())
	}
	for _, t := range tokens {
		found = equal(t, strings.TrimSpace(token)) || found
	}
	if !found {
		return refuse(harnessv1.ErrorReason_ERROR_REASON_TOKEN_UNKNOWN, "this process does not know the token: it may be of another mesh, or for another process; send "+d.where())
	}
	return nil
}

// certificate returns the verified certificate of a peer, nil without one.
func (d *Door) certificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok || !d.cfg.Certificates {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

// role admits the roles of a certificate.
func (d *Door) role(ctx context.Context, cert *x509.Certificate, method string) error {
	roles := Roles(cert)
	if roles == nil {
		d.warn(ctx, cert)
		return nil
	}
	if slices.ContainsFunc(roles, func(role string) bool { return MayCall(role, method) }) {
		return nil
	}
	called := RoleOf(method)
	if called == "" {
		called = "gateway"
	}
	text := fmt.Sprintf("a process with the role %s may not call %s of the role %s", strings.Join(roles, ", "), strings.TrimPrefix(method, "/"), called)
	if by := Callers(method); by != nil {
		return status.Errorf(codes.PermissionDenied, "%s: its callers are %s (docs/security.md)", text, strings.Join(by, ", "))
	}
	return status.Errorf(codes.PermissionDenied, "%s: no role calls it (docs/security.md)", text)
}

// maxWarned bounds the certificates that are remembered.
const maxWarned = 1 << 10

// warn logs once that a certificate names no role.
func (d *Door) warn(ctx context.Context, cert *x509.Certificate) {
	sum := sha256.Sum256(cert.Raw)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.warned[sum] {
		return
	}
	if len(d.warned) >= maxWarned {
		clear(d.warned)
	}
	d.warned[sum] = true
	remote := ""
	if p, ok := peer.FromContext(ctx); ok {
		remote = p.Addr.String()
	}
	d.cfg.Logger.WarnContext(ctx, "the certificate of a caller names no role, so it admits to every service of this process: issue one with the URI of its role",
		"form", URI("NAME"), "remote", remote, "subject", cert.Subject.String(), "serial", cert.SerialNumber.Text(16))
}

// ServerOptions make a server admit only the callers of d. A call is refused before its
// message is received.
func (d *Door) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.InTapHandle(func(ctx context.Context, call *tap.Info) (context.Context, error) {
		return ctx, d.admit(ctx, call.FullMethodName, call.Header.Get("authorization"))
	})}
}

// GatewayOptions make a server with a gateway judge the calls that d takes; the guard of the
// gateway has to leave them alone.
func (d *Door) GatewayOptions() []grpc.ServerOption {
	judge := func(ctx context.Context, method string) error {
		if !d.Takes(ctx, method) {
			return nil
		}
		return d.admit(ctx, method, metadata.ValueFromIncomingContext(ctx, "authorization"))
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := judge(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := judge(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return next(srv, stream)
		}),
	}
}

func refuse(reason harnessv1.ErrorReason, text string) error {
	st, _ := fault.Status(fault.New(codes.Unauthenticated, reason, text))
	return st.Err()
}
