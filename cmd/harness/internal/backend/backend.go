// Package backend gets a command line hold of a gateway: over the network, at
// the local socket of the process that holds a data directory, or in a mesh of
// its own that it starts in this process. A caller states what it needs and
// gets a Session; where the session comes from makes no difference afterwards.
//
// Errors are one line for people that says what to do.
package backend

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Need is what a verb wants to do, which decides what is started for it when
// nobody holds the data directory.
type Need int

const (
	// Read looks at runs. Offline: a gateway alone.
	Read Need = iota
	// Store leaves an input for later. Offline: a gateway alone.
	Store
	// Drive makes a run go on. Offline: every role.
	Drive
	// Own starts a run and wants the data directory for itself; a directory
	// that someone holds is refused.
	Own
)

// Options say where the gateway is.
type Options struct {
	// Server is the address of a gateway; empty means the data directory.
	Server string
	// TokenFile holds the token for Server; empty means none.
	TokenFile string
	// TLS asks for TLS whatever the address; CA is a file with the CAs that verify
	// Server, empty means those of the system. A CA asks for TLS, too.
	TLS bool
	CA  string
	// Data is the data directory.
	Data string
	// Keep are runs, as NAMESPACE/RUN, that a local mesh leaves running.
	Keep []string
	// Env looks up the environment, for the keys of model providers.
	Env func(string) string
	// Catalogue is what a local mesh knows of models; nil means the embedded one.
	Catalogue *catalogue.Catalogue
	// Logger takes what the mesh logs.
	Logger *slog.Logger
}

// Session is a gateway that can be called.
type Session struct {
	// Client calls it.
	Client harnessv1.GatewayServiceClient
	// Local says that the mesh runs in this process.
	Local bool
	// Working says that the mesh can carry a run on, as far as that is known:
	// false only for the lone gateway of Read and Store.
	Working bool
	// Lost is closed when the local mesh has ended by itself; nil for others.
	Lost <-chan struct{}

	close func(context.Context) error
}

// Close lets go of the gateway and, where it is local, stops the mesh.
func (s *Session) Close(ctx context.Context) error {
	if s == nil || s.close == nil {
		return nil
	}
	stop := s.close
	s.close = nil
	return stop(ctx)
}

// ErrNoData says that the data directory does not exist, so that there is
// nothing to look at.
var ErrNoData = errors.New("the data directory does not exist")

// Connect gets a session that fits the need.
func Connect(ctx context.Context, opts Options, need Need) (*Session, error) {
	if opts.Server != "" {
		conn, err := dial(opts)
		if err != nil {
			return nil, err
		}
		return remote(conn), nil
	}
	return connectLocal(ctx, opts, need)
}

func remote(conn *grpc.ClientConn) *Session {
	return &Session{
		Client:  harnessv1.NewGatewayServiceClient(conn),
		Working: true,
		close:   func(context.Context) error { return conn.Close() },
	}
}
