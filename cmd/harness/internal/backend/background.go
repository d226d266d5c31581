package backend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
)

// Background is how a command uses the background process of its user.
type Background struct {
	// Program starts the process.
	Program daemon.Program
}

// Process is the process that has the data directory of a session: the background process, or another one
// that serves it, such as harness serve.
type Process struct {
	// Holder describes it.
	node.Holder
}

// joinBackground returns a session at the background process, which it starts if no process
// uses the directory.
func joinBackground(ctx context.Context, opts Options) (*Session, error) {
	at, err := join(ctx, opts)
	if err != nil {
		return nil, err
	}
	s := &Session{Client: harnessv1.NewGatewayServiceClient(at), Working: true, Process: at.process, close: func(context.Context) error { return at.conn.Close() }}
	if opts.Lasting {
		lasting := &lastingConn{opts: opts, at: at}
		s.Client, s.close = harnessv1.NewGatewayServiceClient(lasting), lasting.close
	}
	return s, nil
}

// connection is one to the process that has the data directory.
type connection struct {
	grpc.ClientConnInterface
	conn    *grpc.ClientConn
	process *Process
}

// join connects to the process that has the data directory, and starts the background process if none has.
func join(ctx context.Context, opts Options) (*connection, error) {
	conn, err := daemon.Join(ctx, opts.Data, opts.Background.Program)
	if err != nil {
		return nil, err
	}
	h := node.HolderOf(opts.Data)
	if program := opts.Background.Program; h.Background && daemon.FirstJoin(opts.Data, program.Build, h) && program.Note != nil {
		program.Note("the background process is another build (" + h.Build + "); harness daemon restart replaces it")
	}
	if file := opts.Background.Program.Catalogue; file != "" && h.Background {
		if err := daemon.CheckCatalogue(opts.Data, file, h); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	at := &connection{conn, conn, &Process{h}}
	if h.Background { // another process has the environment for all runs
		at.ClientConnInterface = &providingConn{ClientConnInterface: conn, local: harnessv1.NewLocalServiceClient(conn), opts: opts}
	}
	return at, nil
}

// lastingConn joins the next process when the one that it was connected to has ended.
type lastingConn struct {
	opts Options

	mu sync.Mutex
	at *connection
}

// current returns a connection to the process that has the data directory now, other than lost.
func (c *lastingConn) current(ctx context.Context, lost *connection) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != lost && c.at.conn.GetState() == connectivity.Ready {
		return c.at, nil
	}
	next, err := join(ctx, c.opts)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	_ = c.at.conn.Close()
	c.at = next
	return next, nil
}

// Invoke makes a call.
func (c *lastingConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	at, err := c.current(ctx, nil)
	if err != nil {
		return err
	}
	err = at.Invoke(ctx, method, args, reply, opts...)
	if status.Code(err) != codes.Unavailable || !repeatable(args) {
		return err
	}
	next, joinErr := c.current(ctx, at) // whose state may not show it yet
	if joinErr != nil {
		return err
	}
	return next.Invoke(ctx, method, args, reply, opts...)
}

// repeatable reports whether a request has no second effect: it only reads, or it has an id.
func repeatable(request any) bool {
	m, ok := request.(proto.Message)
	if !ok {
		return false
	}
	field := m.ProtoReflect().Descriptor().Fields().ByName("request_id")
	return field == nil || m.ProtoReflect().Has(field)
}

// NewStream opens a stream.
func (c *lastingConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	at, err := c.current(ctx, nil)
	if err != nil {
		return nil, err
	}
	return at.NewStream(ctx, desc, method, opts...)
}

func (c *lastingConn) close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.conn.Close()
}

// providingConn gives a run its environment before each input that drives it.
type providingConn struct {
	grpc.ClientConnInterface
	local harnessv1.LocalServiceClient
	opts  Options
}

// Invoke makes a call.
func (c *providingConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := c.provide(ctx, args); err != nil {
		return err
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c *providingConn) provide(ctx context.Context, request any) error {
	run := &harnessv1.LocalRun{}
	var spec *harnessv1.RunSpec
	switch r := request.(type) {
	case *harnessv1.StartRunRequest:
		run.Namespace, run.RunId, spec = r.GetNamespace(), r.GetRunId(), r.GetSpec()
	case *harnessv1.SendInputRequest:
		run.Namespace, run.RunId = r.GetNamespace(), r.GetRunId()
	case *harnessv1.ResumeRunRequest:
		run.Namespace, run.RunId = r.GetNamespace(), r.GetRunId()
	default:
		return nil
	}
	if _, starts := request.(*harnessv1.StartRunRequest); !starts {
		now, err := c.rootOf(ctx, run)
		if err != nil {
			return nil //nolint:nilerr // the request itself reports it
		}
		run.RunId, spec = now.GetRun().GetRunId(), now.GetSpec()
	}
	env := environment(c.opts.Background.Program.Environ, c.opts.Catalogue, variablesOf(spec)) // the tool host withholds providers' keys
	env.Run = run
	_, err := c.local.ProvideEnvironment(ctx, &harnessv1.ProvideEnvironmentRequest{Environment: env})
	if c.opts.Server != "" && status.Code(err) == codes.Unimplemented {
		return nil // a server, which has the environment for all runs
	}
	return err
}

// rootOf returns the run at the top of the tree of a run, whose variables its sub-agents have.
func (c *providingConn) rootOf(ctx context.Context, run *harnessv1.LocalRun) (*harnessv1.GetRunResponse, error) {
	gateway := harnessv1.NewGatewayServiceClient(c.ClientConnInterface)
	r, err := gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: run.GetNamespace(), RunId: run.GetRunId()})
	if root := r.GetRun().GetRootRunId(); err == nil && root != "" {
		return gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: run.GetNamespace(), RunId: root})
	}
	return r, err
}

// variablesOf returns the names of the variables that commands, servers and web tools of a run get.
func variablesOf(spec *harnessv1.RunSpec) []string {
	return slices.Concat(spec.GetConfig().GetSandbox().GetEnv(), mcptool.Variables(spec.GetAgent().GetMcp()), webtool.Variables(spec.GetAgent().GetWeb()))
}

// environment returns what a run gets of a terminal: the variables that the catalogue names,
// and those that commands may have, with the names in passed.
func environment(environ []string, models *catalogue.Catalogue, passed []string) *harnessv1.RunEnvironment {
	if models == nil {
		models = catalogue.Default()
	}
	names := models.Variables()
	env := &harnessv1.RunEnvironment{Provider: map[string]string{}}
	for _, pair := range environ {
		name, value, found := strings.Cut(pair, "=")
		if !found || strings.ContainsRune(pair, 0) {
			continue
		}
		if slices.Contains(names, name) {
			env.Provider[name] = value
		}
		if confinement.Passes(name) && !slices.Contains(names, name) || slices.Contains(passed, name) {
			env.Commands = append(env.Commands, pair)
		}
	}
	return env
}

// Held reports whether a process uses the data directory.
func Held(data string) bool { return node.Held(data) }

// stopPoll is how often a data directory is checked for the end of its process.
const stopPoll = 20 * time.Millisecond

// AwaitEnd waits until no process uses the data directory.
func AwaitEnd(ctx context.Context, data string) error {
	tick := time.NewTicker(stopPoll)
	defer tick.Stop()
	for node.Held(data) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
