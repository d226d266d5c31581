// Package mcpclient is the client of servers of tools, those of the Model Context Protocol and
// tool services: it starts and stops them, lists their tools and calls them.
//
// A server of a run is a process, or a connection over HTTP or gRPC, that belongs to this run alone, unless
// its settings say shared. It is started when the run is described first, again when a call
// needs it, stopped after five idle minutes and at the end of the run. What a server sends is
// bounded and never trusted: neither its messages, nor its lists, nor its results.
//
// A call whose end is not known is Unknown, and is not sent again unless its tool is
// idempotent by the settings of the server, or its service remembers keys.
package mcpclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

const (
	// defaultIdle is after how long a server without a call is stopped, and keptIdle after how
	// long it is forgotten.
	defaultIdle = 5 * time.Minute
	keptIdle    = time.Hour
	// startTimeout bounds an attempt to start a server and to list its tools.
	startTimeout = 2 * time.Minute
	// minBackoff and maxBackoff bound the pause before a server that failed is started again.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// shortPause is a pause that a call waits for instead of failing: the server may be back.
	shortPause = 2 * time.Second
	// grace is how long a server has to end a call that was cancelled.
	grace = 250 * time.Millisecond
	// pingTime is how long it has to show that it reads the cancellation.
	pingTime = 100 * time.Millisecond
)

// Run is the run whose servers are used.
type Run struct {
	// Namespace, and Key, which is unique among all runs of all namespaces.
	Namespace, Key string
	// Workspace is the absolute path of the folder in which processes work.
	Workspace string
	// Sandbox is that of the commands of the run.
	Sandbox *harnessv1.SandboxConfig
	// Local: a local person named the addresses of the servers, so that they may be private.
	Local bool
}

// Process is a server to run as a process.
type Process struct {
	Run Run
	// Server has the program and its network.
	Server *harnessv1.McpServer
	// Line is its command line for sh.
	Line string
	// Environ are its variables in addition to those of commands.
	Environ []string
	// Input is its standard input. Process closes it.
	Input *os.File
	// Output and Errors receive standard output and standard error.
	Output, Errors io.Writer
	// Notice sets what people should know of a server that is ready.
	Notice func(text string)
}

// Config configures Servers. Process, Transport, Dial and Variable are required.
type Config struct {
	// Process runs a process, and returns when nothing of it is left: when it has ended, or
	// ctx has. The error is why it did not run.
	Process func(ctx context.Context, p Process) error
	// Transport returns what connects to the address of a server.
	Transport func(server *harnessv1.McpServer, address string, local bool) http.RoundTripper
	// Dial returns a connection to a ToolService. It sends nothing; Servers closes it.
	Dial func(server *harnessv1.McpServer) (*grpc.ClientConn, error)
	// Variable returns the value of a variable that settings name.
	Variable func(run Run, name string) (value string, found bool)
	// SignIns have the tokens of servers at which persons have signed in. Nil: no server has one.
	SignIns *signin.SignIns
	// Approvals are the definitions that persons have approved.
	Approvals *Approvals
	// Idle is after how long a server without a call is stopped. Default 5 minutes.
	Idle time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
}

// Servers are the servers of all runs. It is safe for concurrent use.
type Servers struct {
	config      Config
	conversions conversions

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	// held are the calls that wait for answers, by the states of their questions.
	held    map[string]*heldCall
	running sync.WaitGroup
}

// New returns Servers without a server.
func New(config Config) *Servers {
	if config.Idle == 0 {
		config.Idle = defaultIdle
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Servers{config: config, sessions: map[string]*session{}, held: map[string]*heldCall{}}
}

// errClosed: the servers are closed.
var errClosed = errors.New("the tool host is closing")

// session returns the session of a server, which may not be connected.
func (s *Servers) session(run Run, server *harnessv1.McpServer) (*session, error) {
	key := sessionKey(run, server)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	have := s.sessions[key]
	if have == nil {
		have = newSession(s, key, run, server)
		s.sessions[key] = have
	}
	return have, nil
}

// sessionKey returns the same text for calls that share a server.
func sessionKey(run Run, server *harnessv1.McpServer) string {
	settings := proto.CloneOf(server)
	settings.Tools, settings.Idempotent, settings.Pins, settings.Trust, settings.Timeout = nil, nil, nil, "", nil
	settings.Policy, settings.Load = 0, 0
	sum := sha256.New()
	for _, m := range []proto.Message{settings, run.Sandbox} {
		data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		_, _ = sum.Write(data)
	}
	if run.Local {
		_, _ = sum.Write([]byte("local"))
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if server.GetShared() {
		return "shared\x00" + run.Namespace + "\x00" + digest
	}
	return runPrefix(run.Key) + digest
}

func runPrefix(run string) string { return "run\x00" + run + "\x00" }

// Describe starts the servers of a run that have not been started, waits at most for a time
// until each is ready or has failed, and returns how they are.
func (s *Servers) Describe(ctx context.Context, run Run, servers []*harnessv1.McpServer, wait time.Duration) ([]*harnessv1.DescribedServer, error) {
	sessions := make([]*session, len(servers))
	for i, server := range servers {
		var err error
		if sessions[i], err = s.session(run, server); err != nil {
			return nil, err
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	over := wait <= 0
	described := make([]*harnessv1.DescribedServer, len(servers))
	starts := make([]<-chan struct{}, len(servers))
	for i, have := range sessions {
		starts[i] = have.startOnce()
	}
	for _, started := range starts {
		if over || started == nil {
			continue
		}
		select {
		case <-started:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for i, have := range sessions {
		described[i] = have.describe(servers[i])
	}
	return described, nil
}

// EndRun stops the servers that belong to a run alone, and returns when nothing of them is left.
func (s *Servers) EndRun(run string) {
	s.stop(func(key string) bool {
		return len(key) > len(runPrefix(run)) && key[:len(runPrefix(run))] == runPrefix(run)
	})
}

// Close stops all servers.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(func(string) bool { return true })
	s.running.Wait()
}

// stop stops and forgets servers.
func (s *Servers) stop(which func(key string) bool) {
	s.mu.Lock()
	var ending []*session
	for key, have := range s.sessions {
		if which(key) {
			ending = append(ending, have)
			delete(s.sessions, key)
		}
	}
	s.mu.Unlock()
	var wait sync.WaitGroup
	for _, have := range ending {
		wait.Go(func() { have.end(errClosed) })
	}
	wait.Wait()
}

// forget forgets a session that has not been used for long.
func (s *Servers) forget(have *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[have.key] == have {
		delete(s.sessions, have.key)
	}
}
