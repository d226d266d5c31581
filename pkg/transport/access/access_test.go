package access_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

const (
	forAll  = "token-for-all-namespaces"
	forSome = "token-for-some-namespaces"
)

func tokens(t *testing.T, text string) (*access.Tokens, string, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	file, err := access.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return file, path, &log
}

// TestTokenFileIsReadAgain: a removed token is refused, and a mistake in the file leaves
// the previous tokens valid. No token gets into the log.
func TestTokenFileIsReadAgain(t *testing.T) {
	file, path, log := tokens(t, "# people\n\n"+forAll+"\n  "+forSome+"\ta,b  \nlonger-than-others-token *\n")
	c, ok := file.Find(forSome)
	if !ok || !c.May("a") || !c.May("b") || c.May("c") || c.May("*") || c.May("") {
		t.Errorf("%v, %v", c, ok)
	}
	for _, token := range []string{forAll, "longer-than-others-token"} {
		if c, ok := file.Find(token); !ok || !c.May("anything") {
			t.Errorf("%v, %v", c, ok)
		}
	}
	for _, token := range []string{"", "#", forAll + "x", forAll[1:], forSome + " a,b"} {
		if _, ok := file.Find(token); ok {
			t.Errorf("%q is taken", token)
		}
	}
	for text, want := range map[string]bool{forSome + "\n": false, forAll + "\nshort\n": false, forAll: true, "": true} {
		if text == "" || strings.Contains(text, "short") {
			_, want = file.Find(forAll) // as before
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := file.Find(forAll); ok != want {
			t.Errorf("after %q: %v", text, ok)
		}
	}
	if strings.Contains(log.String(), "token-for") || strings.Contains(log.String(), "short") || !strings.Contains(log.String(), "cannot be read") {
		t.Errorf("the log says %s", log)
	}
}

func TestInvalidTokenFileIsRefusedByLine(t *testing.T) {
	for text, words := range map[string][]string{
		"# nobody\n":                     {"missing token", "openssl rand"},
		"\nabc\n":                        {"line 2", "at least 16"},
		"0123456789abcdef a b\n":         {"line 1", "without spaces"},
		"0123456789abcdef a,,b\n":        {"line 1", "is not a namespace"},
		"production-team-a q83v/kXw==\n": {"line 1", "is not a namespace"}, // the columns were swapped
		"production-team-a 00112233445566778899aabbccddeeff\n": {"line 1", "is not a namespace"},
		"0123456789abcdef a/b\n":                               {"line 1", "is not a namespace"},
		"0123456789äbcdefgh\n":                                 {"line 1", "letters, digits"},
		"0123456789abcdef\n0123456789abcdef a":                 {"line 2", "duplicate token"},
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := access.Open(path, slog.New(slog.DiscardHandler))
		for _, w := range append(words, path) {
			if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "0123456789") || strings.Contains(err.Error(), "q83v") || strings.Contains(err.Error(), "0011223344") {
				t.Errorf("%q: %v does not say %q", text, err, w)
			}
		}
	}
	if _, err := access.Open("nowhere", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file that is not there is taken")
	}
}

// gateway answers every call with the namespaces that its caller's lists are confined
// to.
type gateway struct {
	harnessv1.UnimplementedGatewayServiceServer
}

func (gateway) ListRuns(ctx context.Context, _ *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	if len(metadata.ValueFromIncomingContext(ctx, "authorization")) > 0 {
		return nil, status.Error(codes.Internal, "the handler is shown the token")
	}
	return &harnessv1.ListRunsResponse{NextPageToken: strings.Join(access.Namespaces(ctx), ",")}, nil
}

// ListPending answers with the name of its caller.
func (gateway) ListPending(ctx context.Context, _ *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	return &harnessv1.ListPendingResponse{NextPageToken: access.Name(ctx)}, nil
}

// ResumeRun answers whether its caller may approve calls.
func (gateway) ResumeRun(ctx context.Context, _ *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	return &harnessv1.ResumeRunResponse{RequestId: strconv.FormatBool(access.Approves(ctx))}, nil
}

// Run receives every message.
func (gateway) Run(stream grpc.BidiStreamingServer[harnessv1.RunRequest, harnessv1.RunResponse]) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func dial(t *testing.T, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	pipe := bufconn.Listen(1 << 16)
	s := grpc.NewServer(options...)
	harnessv1.RegisterGatewayServiceServer(s, gateway{})
	healthv1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); s.Stop(); <-served })
	return conn
}

// withToken returns a context with the headers of a call.
func withToken(t *testing.T, values ...string) context.Context {
	return metadata.NewOutgoingContext(t.Context(), metadata.MD{"authorization": values})
}

func TestCallNeedsAKnownToken(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n"+forSome+" a,b\n")
	conn := dial(t, access.NewGuard(file).ServerOptions()...)
	client := harnessv1.NewGatewayServiceClient(conn)
	for name, c := range map[string]struct {
		ctx    context.Context
		reason string
	}{
		"none":          {t.Context(), "TOKEN_MISSING"},
		"basic":         {withToken(t, "Basic "+forAll), "TOKEN_MISSING"},
		"two":           {withToken(t, "Bearer "+forAll, "Bearer "+forAll), "TOKEN_MISSING"},
		"bare":          {withToken(t, forAll), "TOKEN_MISSING"},
		"empty":         {withToken(t, "Bearer "), "TOKEN_UNKNOWN"},
		"wrong":         {withToken(t, "Bearer not-"+forAll), "TOKEN_UNKNOWN"},
		"a part of one": {withToken(t, "Bearer "+forAll[:20]), "TOKEN_UNKNOWN"},
		"right":         {withToken(t, "Bearer "+forAll), ""},
		"in lower case": {withToken(t, "bearer "+forAll), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, unary := client.ListRuns(c.ctx, &harnessv1.ListRunsRequest{})
			stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(c.ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
			_, streamed := stream.Recv()
			for _, err := range []error{unary, streamed} {
				want := codes.Unauthenticated
				if c.reason == "" {
					want = codes.OK
				}
				if status.Code(err) != want || fault.ReasonOf(err) != c.reason || strings.Contains(status.Convert(err).Message(), forAll) {
					t.Errorf("%v, %s", err, fault.ReasonOf(err))
				}
			}
		})
	}
	if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("health needs a token: %v", err)
	}
}

// TestNothingIsReceivedWithoutAToken: a caller without a token is refused before its
// message is received, because a message may be decompressed to a thousand times its
// size.
func TestNothingIsReceivedWithoutAToken(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n")
	client := harnessv1.NewGatewayServiceClient(dial(t, append(access.NewGuard(file).ServerOptions(), grpc.MaxRecvMsgSize(1<<10))...))
	large := &harnessv1.ListRunsRequest{PageToken: strings.Repeat("x", 1<<12)}
	if _, err := client.ListRuns(t.Context(), large); status.Code(err) != codes.Unauthenticated || fault.ReasonOf(err) != "TOKEN_MISSING" {
		t.Errorf("without a token: %v", err)
	}
	if _, err := client.ListRuns(withToken(t, "Bearer "+forAll), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("with one: %v", err)
	}
}

// TestRouteIsKnownOutsideTheGuard: middleware that counts requests by route runs outside
// the guard, and the routes are inside.
func TestRouteIsKnownOutsideTheGuard(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/runs/{id}", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest(http.MethodGet, "/v1/runs/x", nil)
	r.Header.Set("Authorization", "Bearer "+forAll)
	access.NewGuard(file).HTTP(mux, func(http.ResponseWriter, error) {}).ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "GET /v1/runs/{id}" {
		t.Errorf("the route is %q", r.Pattern)
	}
}

// setNamespace sets the namespace of a request, or of the first message of a Run stream.
func setNamespace(m protoreflect.Message, namespace string) bool {
	if f := m.Descriptor().Fields().ByName("namespace"); f != nil {
		m.Set(f, protoreflect.ValueOfString(namespace))
		return true
	}
	if start := m.Descriptor().Fields().ByName("start"); start != nil {
		return setNamespace(m.Mutable(start).Message(), namespace)
	}
	return false
}

// TestTokenIsForItsNamespacesInEveryCall of the gateway's service, also of methods that
// do not exist yet: over gRPC, and through a client for HTTP requests.
func TestTokenIsForItsNamespacesInEveryCall(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n"+forSome+" a,b\n")
	guard := access.NewGuard(file)
	conn := dial(t, guard.ServerOptions()...)
	inside := guard.Confine(dial(t))
	methods := harnessv1.File_harness_v1_gateway_proto.Services().ByName("GatewayService").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
		desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
		call := func(conn grpc.ClientConnInterface, ctx context.Context, namespace string) error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			request := dynamicpb.NewMessage(method.Input())
			if !setNamespace(request, namespace) {
				t.Fatalf("%s has no namespace: a token for some namespaces cannot use it", method.FullName())
			}
			// A message of the generated type, as callers in this process use.
			typed := concrete(t, request)
			if !method.IsStreamingClient() && !method.IsStreamingServer() {
				return conn.Invoke(ctx, path, typed, &harnessv1.ListRunsResponse{})
			}
			stream, err := conn.NewStream(ctx, desc, path)
			if err == nil {
				err = stream.SendMsg(typed)
			}
			if err == nil {
				err = stream.CloseSend()
			}
			if err == nil {
				err = stream.RecvMsg(&harnessv1.RunResponse{})
			}
			return err
		}
		for _, c := range []struct {
			token, namespace string
			refused          bool
		}{
			{forAll, "c", false}, {forAll, "", false}, {forAll, "*", false},
			{forSome, "a", false}, {forSome, "b", false}, {forSome, "c", true}, {forSome, "", true}, {forSome, "a,b", true},
			{forSome, "*", !strings.HasPrefix(string(method.Name()), "List") && method.Name() != "WatchRuns"},
		} {
			over := map[string]error{"gRPC": call(conn, withToken(t, "Bearer "+c.token), c.namespace)}
			handler := guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				over["HTTP"] = call(inside, r.Context(), c.namespace)
			}), nil)
			request := httptest.NewRequest(http.MethodPost, "/v1/runs", nil)
			request.Header.Set("Authorization", "Bearer "+c.token)
			handler.ServeHTTP(httptest.NewRecorder(), request)
			for way, err := range over {
				forbidden := status.Code(err) == codes.PermissionDenied && fault.ReasonOf(err) == "NAMESPACE_FORBIDDEN"
				if forbidden != c.refused || status.Code(err) == codes.Unauthenticated {
					t.Errorf("%s of %q with %s over %s: %v", method.Name(), c.namespace, c.token, way, err)
				}
			}
			if len(over) != 2 {
				t.Error("the handler was not called")
			}
		}
	}
}

func concrete(t *testing.T, m *dynamicpb.Message) proto.Message {
	t.Helper()
	var typed proto.Message
	for _, c := range []proto.Message{
		&harnessv1.RunRequest{}, &harnessv1.StartRunRequest{}, &harnessv1.WatchRunRequest{}, &harnessv1.WatchRunsRequest{}, &harnessv1.GetRunRequest{},
		&harnessv1.GetStateRequest{}, &harnessv1.GetConversationRequest{}, &harnessv1.GetContextRequest{}, &harnessv1.GetBlobRequest{}, &harnessv1.ListRunsRequest{},
		&harnessv1.ListPendingRequest{}, &harnessv1.SendInputRequest{}, &harnessv1.InterruptRunRequest{}, &harnessv1.ResumeRunRequest{},
		&harnessv1.CancelRunRequest{}, &harnessv1.DeleteRunRequest{}, &harnessv1.GetPromptsRequest{}, &harnessv1.SetPromptRequest{},
		&harnessv1.GetProfileRequest{}, &harnessv1.ResetProfileRequest{},
		&harnessv1.StartSignInRequest{}, &harnessv1.FinishSignInRequest{}, &harnessv1.GetSignInRequest{}, &harnessv1.SignOutRequest{},
	} {
		if c.ProtoReflect().Descriptor().FullName() == m.Descriptor().FullName() {
			typed = c
		}
	}
	raw, err := proto.Marshal(m)
	if err == nil && typed != nil {
		err = proto.Unmarshal(raw, typed)
	}
	if err != nil || typed == nil {
		t.Fatalf("%s: %v", m.Descriptor().FullName(), err)
	}
	return typed
}

// TestListsOfAllNamespacesAreConfined to those of the token, whatever header the caller
// sets.
func TestListsOfAllNamespacesAreConfined(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n"+forSome+" a,b\n")
	client := harnessv1.NewGatewayServiceClient(dial(t, access.NewGuard(file).ServerOptions()...))
	for token, want := range map[string]string{forAll: "", forSome: "a,b"} {
		ctx := metadata.AppendToOutgoingContext(withToken(t, "Bearer "+token), "harness-namespaces", "c")
		r, err := client.ListRuns(ctx, &harnessv1.ListRunsRequest{Namespace: "*"})
		if err != nil || r.GetNextPageToken() != want {
			t.Errorf("%s: %q, %v", token, r.GetNextPageToken(), err)
		}
	}
}

// TestHTTPNeedsAKnownToken: a request without one is refused with a reason and the
// scheme to use.
func TestHTTPNeedsAKnownToken(t *testing.T) {
	file, _, _ := tokens(t, forAll)
	var refused error
	handler := access.NewGuard(file).HTTP(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		func(w http.ResponseWriter, err error) {
			refused = err
			w.WriteHeader(http.StatusUnauthorized)
		})
	for name, c := range map[string]struct {
		method string
		tokens []string
		reason string
	}{
		"none":    {"GET", nil, "TOKEN_MISSING"},
		"options": {"OPTIONS", nil, "TOKEN_MISSING"},
		"two":     {"GET", []string{"Bearer " + forAll, "Bearer " + forAll}, "TOKEN_MISSING"},
		"wrong":   {"GET", []string{"Bearer nothing-like-it"}, "TOKEN_UNKNOWN"},
		"right":   {"GET", []string{"Bearer " + forAll}, ""},
	} {
		refused = nil
		r, w := httptest.NewRequest(c.method, "/v1/runs", nil), httptest.NewRecorder()
		r.Header["Authorization"] = c.tokens
		handler.ServeHTTP(w, r)
		want := http.StatusNoContent
		if c.reason != "" {
			want = http.StatusUnauthorized
		}
		if w.Code != want || fault.ReasonOf(refused) != c.reason || (w.Header().Get("WWW-Authenticate") != "") != (c.reason != "") {
			t.Errorf("%s: %d, %v, %v", name, w.Code, refused, w.Header())
		}
	}
}
