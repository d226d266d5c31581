// Package gatewayhttp serves the gateway over HTTP: JSON for calls, server-sent events
// or JSON lines for streams. It has no state and decides nothing: each request becomes a
// call of GatewayService, so that validation, storage and events are the same as over
// gRPC.
//
// The JSON is that of package eventjson, which the command line writes too. docs/http.md
// is the page for people, docs/openapi the description for programs.
//
// # Streams
//
// The id of an event is VERSION-INDEX; the id of a result is that of the event before it
// and a hash of the result. A client that reconnects with the last id it saw receives
// the rest of that version and everything after it. A client that reads nothing for
// Config.Patience is disconnected. A disconnected client costs nothing, and its run
// continues.
//
// # Browsers
//
// Pages of other origins are refused unless Config.CORS names them. On loopback, so are
// requests for a foreign host name, by which a page could bypass that check (DNS
// rebinding).
package gatewayhttp

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Config configures a handler.
type Config struct {
	// Gateway is called with the context of the request. Required.
	Gateway harnessv1.GatewayServiceClient
	// CORS are the origins of pages that may call, such as https://app.example, or * for
	// all. Empty: none. CheckOrigins validates them.
	CORS []string
	// Guard wraps every route except the index and the description, inside CORS: the
	// place to check a token. Nil: no check.
	Guard func(http.Handler) http.Handler
	// MCP serves /mcp, inside Guard. Nil: nothing does.
	MCP http.Handler
	// Logger; nil discards.
	Logger *slog.Logger
	// KeepAlive is the silence after which a stream of events gets a comment. Default 15
	// s.
	KeepAlive time.Duration
	// Patience is how long a client may leave sent data unread. Default 30 s.
	Patience time.Duration
}

const (
	defaultKeepAlive = 15 * time.Second
	defaultPatience  = 30 * time.Second
)

// server serves the routes.
type server struct {
	gateway   harnessv1.GatewayServiceClient
	logger    *slog.Logger
	keepAlive time.Duration
	patience  time.Duration
}

// handler answers one request. An error is written as JSON, unless the answer has
// started.
type handler func(*server, http.ResponseWriter, *http.Request) error

// route is an operation.
type route struct {
	method, path string
	handle       handler
	// open: the route is served without Config.Guard.
	open bool
	// stream: the answer may be endless, so HEAD is not supported.
	stream bool
}

var routes = []route{
	{method: http.MethodGet, path: "/{$}", handle: (*server).index, open: true},
	{method: http.MethodGet, path: "/openapi.json", handle: (*server).description, open: true},
	{method: http.MethodPost, path: "/v1/runs", handle: (*server).start, stream: true},
	{method: http.MethodGet, path: "/v1/runs", handle: (*server).list},
	{method: http.MethodGet, path: "/v1/runs/{run_id}", handle: (*server).run},
	{method: http.MethodDelete, path: "/v1/runs/{run_id}", handle: (*server).delete},
	{method: http.MethodGet, path: "/v1/runs/{run_id}/events", handle: (*server).events, stream: true},
	{method: http.MethodGet, path: "/v1/runs/{run_id}/state", handle: (*server).state},
	{method: http.MethodGet, path: "/v1/runs/{run_id}/conversation", handle: (*server).conversation},
	{method: http.MethodGet, path: "/v1/runs/{run_id}/context", handle: (*server).context},
	{method: http.MethodGet, path: "/v1/runs/{run_id}/blobs/{digest}", handle: (*server).blob},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/messages", handle: (*server).message},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/approvals", handle: (*server).approve},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/answers", handle: (*server).answer},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/mode", handle: (*server).mode},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/model", handle: (*server).model},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/feedback", handle: (*server).feedback},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/replan", handle: (*server).replan},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/interrupt", handle: (*server).interrupt},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/resume", handle: (*server).resume},
	{method: http.MethodPost, path: "/v1/runs/{run_id}/cancel", handle: (*server).cancel},
	{method: http.MethodGet, path: "/v1/prompts", handle: (*server).prompts},
	{method: http.MethodPut, path: "/v1/prompts/{prompt_id}", handle: (*server).setPrompt},
	{method: http.MethodDelete, path: "/v1/prompts/{prompt_id}", handle: (*server).unsetPrompt},
	{method: http.MethodGet, path: "/v1/profile", handle: (*server).profile},
	{method: http.MethodDelete, path: "/v1/profile", handle: (*server).resetProfile},
	{method: http.MethodPost, path: "/v1/sign-ins/start", handle: (*server).startSignIn},
	{method: http.MethodPost, path: "/v1/sign-ins/finish", handle: (*server).finishSignIn},
	{method: http.MethodPost, path: "/v1/sign-ins/get", handle: (*server).signIn},
	{method: http.MethodPost, path: "/v1/sign-ins/end", handle: (*server).signOut},
	{method: http.MethodGet, path: "/v1/pending", handle: (*server).pending},
	{method: http.MethodGet, path: "/v1/events", handle: (*server).runEvents, stream: true},
}

// New returns a handler. It starts no goroutine that outlives a request.
func New(cfg Config) http.Handler {
	s := &server{gateway: cfg.Gateway, logger: cfg.Logger, keepAlive: cfg.KeepAlive, patience: cfg.Patience}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.keepAlive <= 0 {
		s.keepAlive = defaultKeepAlive
	}
	if s.patience <= 0 {
		s.patience = defaultPatience
	}
	guard := cfg.Guard
	if guard == nil {
		guard = func(next http.Handler) http.Handler { return next }
	}
	guarded, open := http.NewServeMux(), http.NewServeMux()
	for path, methods := range byPath() {
		if methods[0].open {
			open.Handle(path, s.methods(methods))
		} else {
			guarded.Handle(path, s.methods(methods))
		}
	}
	if cfg.MCP != nil {
		guarded.Handle("/mcp", cfg.MCP)
	}
	guarded.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { WriteError(w, noRoute(r.URL.Path)) })
	open.Handle("/", guard(guarded))
	return s.safe(newOrigins(cfg.CORS).before(open))
}

// byPath returns the routes of each path.
func byPath() map[string][]route {
	paths := map[string][]route{}
	for _, r := range routes {
		paths[r.path] = append(paths[r.path], r)
	}
	return paths
}

func noRoute(path string) *fault.Error {
	return fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
		"there is nothing at "+clip(path)+": GET /openapi.json lists what there is")
}

// methods serves one path.
func (s *server) methods(of []route) http.Handler {
	allow := []string{http.MethodOptions}
	for _, r := range of {
		allow = append(allow, r.method)
		if r.method == http.MethodGet && !r.stream {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		i := slices.IndexFunc(of, func(o route) bool { return o.method == method })
		if i < 0 || !slices.Contains(allow, r.Method) {
			w.Header().Set("Allow", strings.Join(allow, ", "))
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			writeProblem(w, http.StatusMethodNotAllowed, problem{
				Code: codeName(codes.Unimplemented), Message: clip(r.Method) + " is not supported here: expected one of " + strings.Join(allow, ", "),
			})
			return
		}
		if err := of[i].handle(s, w, r); err != nil {
			WriteError(w, err)
		}
	})
}

// safe keeps a panic from the connection and logs it.
func (s *server) safe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p) // the answer is cut off on purpose
			default:
				s.logger.Error("http panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				WriteError(w, errPanic)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
