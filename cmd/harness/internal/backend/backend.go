// Package backend connects a command to a gateway: over the network, at the local socket
// of the process that uses a data directory, or in a mesh that it starts in this
// process. The caller states what it needs and gets a Session that works the same in
// every case.
//
// Errors are one line for people that includes what to do.
package backend

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Need is what a command does, which decides what is started if no process is using the
// data directory.
type Need int

const (
	// Read reads runs. Offline: only a gateway, on a copy if the directory cannot be
	// written.
	Read Need = iota
	// Store leaves an input in an inbox. Offline: only a gateway.
	Store
	// Drive makes a run continue. Offline: every role.
	Drive
	// Own starts a run and needs the data directory exclusively; a directory in use is
	// refused.
	Own
)

// Options locate the gateway.
type Options struct {
	// Server is the address of a gateway; empty means the data directory.
	Server string
	// TokenFile holds the token for Server; empty means the key that a gateway of this
	// machine has noted, if any.
	TokenFile string
	// TLS enables TLS for any address. CA is a file with the CAs that verify Server,
	// empty means those of the system; a CA enables TLS too.
	TLS bool
	CA  string
	// Data is the data directory.
	Data string
	// Keep are runs, as NAMESPACE/RUN, that a local mesh leaves running.
	Keep []string
	// Env looks up the environment, for the keys of model providers and for the folder of
	// notes.
	Env func(string) string
	// Catalogue is the model catalogue of a local mesh; nil means the embedded one.
	Catalogue *catalogue.Catalogue
	// Logger receives the log of a local mesh.
	Logger *slog.Logger
	// Background uses the background process of the user instead of a mesh in this process;
	// nil: no. With Server, which is then a local socket, it has the environment for the process there
	// if that is the background process.
	Background *Background
	// Lasting: the session outlives the background process, and its calls join the next one.
	Lasting bool
}

// Session is a connection to a gateway.
type Session struct {
	// Client calls it.
	Client harnessv1.GatewayServiceClient
	// Local reports whether the mesh runs in this process.
	Local bool
	// Working reports whether the mesh can continue a run, as far as is known: false
	// only for the lone gateway of Read and Store.
	Working bool
	// ReadOnly reports whether the session reads a copy, in which no run can continue.
	ReadOnly bool
	// Process is the one that a verb has joined that uses the background process; nil for any other session.
	Process *Process
	// Lost is closed if the local mesh ends by itself; nil for other sessions.
	Lost <-chan struct{}

	close func(context.Context) error
}

// Close releases the gateway and stops a local mesh.
func (s *Session) Close(ctx context.Context) error {
	if s == nil || s.close == nil {
		return nil
	}
	stop := s.close
	s.close = nil
	return stop(ctx)
}

// ErrNoData is returned by Read and Store if the data directory does not exist.
var ErrNoData = errors.New("the data directory does not exist")

// Connect returns a session with the gateway of opts.Server, which serves every need, or without one
// with the data directory of this machine. The caller closes it. ErrNoData: Read and Store without data.
func Connect(ctx context.Context, opts Options, need Need) (*Session, error) {
	if opts.Server != "" {
		conn, err := dial(opts)
		if err != nil {
			return nil, err
		}
		s := remote(conn)
		if opts.Background != nil {
			s.Client = harnessv1.NewGatewayServiceClient(&providingConn{ClientConnInterface: conn, local: harnessv1.NewLocalServiceClient(conn), opts: opts})
		}
		return s, nil
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
