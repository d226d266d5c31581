package gatewayhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
	"github.com/harnessmesh/harnessmesh/test/kit/openapitest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// shared is the log that all tests write to, each in a separate namespace.
var shared runlog.Log

func TestMain(m *testing.M) {
	storetest.InMemory()
	code, err := withLog(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withLog(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "gatewayhttp")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	nats, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer nats.Stop()
	l, err := nats.Open(context.Background(), jetstream.Config{}, jetstream.Layout{})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	shared = l
	return m.Run(), nil
}

// bed is a gateway that is reached over HTTP, and a namespace.
type bed struct {
	t         testing.TB
	ctx       context.Context
	server    *gatewayserver.Server
	gateway   harnessv1.GatewayServiceClient
	conn      *grpc.ClientConn
	http      *httptest.Server
	namespace string
}

var beds atomic.Int64

func newBed(t testing.TB, change ...func(*gatewayhttp.Config)) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	b := &bed{t: t, ctx: ctx, namespace: fmt.Sprintf("ns%d", beds.Add(1))}
	b.server = gatewayserver.New(gatewayserver.Config{Log: shared, Profiles: profile.New(profile.Config{Values: shared})})
	b.server.Start(ctx)
	b.eventually("the gateway is ready", func() bool { return b.server.Ready() == nil })
	pipe := bufconn.Listen(1 << 20)
	rpc := grpc.NewServer(append(fault.ServerOptions(slog.New(slog.DiscardHandler)), grpc.MaxRecvMsgSize(32<<20))...)
	harnessv1.RegisterGatewayServiceServer(rpc, b.server)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = rpc.Serve(pipe)
	}()
	conn, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	b.must(err)
	b.conn = conn
	b.gateway = harnessv1.NewGatewayServiceClient(conn)
	config := gatewayhttp.Config{Gateway: b.gateway}
	for _, f := range change {
		f(&config)
	}
	b.http = httptest.NewServer(openapitest.Load(t).Handler(t, gatewayhttp.New(config)))
	t.Cleanup(func() {
		b.server.Close() // ends the streams
		b.http.Close()
		_ = conn.Close()
		rpc.Stop()
		<-served
	})
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) eventually(what string, is func() bool) {
	b.t.Helper()
	for !is() {
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// object returns the body as an object.
func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return o
}

// problem returns the error in the body.
func (a answer) problem(t testing.TB) map[string]any {
	t.Helper()
	p, _ := a.object(t)["error"].(map[string]any)
	if p == nil {
		t.Fatalf("%d %s: no error", a.status, a.body)
	}
	return p
}

// address returns the URL of a path, in the bed's namespace unless the path has one.
func (b *bed) address(path string) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	if strings.Contains(path, "namespace=") || path == "/" || path == "/openapi.json" {
		return b.http.URL + path
	}
	return b.http.URL + path + separator + "namespace=" + b.namespace
}

func (b *bed) request(method, path, body string, header ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.ctx, method, b.address(path), strings.NewReader(body))
	b.must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (b *bed) do(method, path, body string, header ...string) answer {
	b.t.Helper()
	resp, err := b.http.Client().Do(b.request(method, path, body, header...))
	b.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.must(err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (b *bed) get(path string, header ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", header...)
}

func (b *bed) post(path, body string, header ...string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, body, header...)
}

// sse is an event of a stream.
type sse struct{ id, name, data string }

// stream is a stream of events that is being read.
type stream struct {
	b      *bed
	status int
	lines  *bufio.Scanner
	leave  func()
	last   string
}

// listed reads a list until it has n entries: lists lag behind the log by a few
// milliseconds.
func (b *bed) listed(path, key string, n int) []any {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		list := b.get(path).object(b.t)[key].([]any)
		if len(list) == n || time.Now().After(end) {
			return list
		}
	}
}

func (b *bed) open(path string, header ...string) *stream {
	b.t.Helper()
	r := b.request(http.MethodGet, path, "", header...)
	ctx, cancel := context.WithCancel(b.ctx)
	resp, err := b.http.Client().Do(r.WithContext(ctx)) //nolint:bodyclose // leave closes it
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	s := &stream{b: b, status: resp.StatusCode, lines: bufio.NewScanner(resp.Body), leave: func() {
		cancel()
		_ = resp.Body.Close()
	}}
	s.lines.Buffer(nil, 1<<22)
	b.t.Cleanup(s.leave)
	return s
}

// next returns the next event; ok is false at the end.
func (s *stream) next() (e sse, ok bool) {
	for s.lines.Scan() {
		line := s.lines.Text()
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "":
			if line == "" && e.name != "" {
				if e.id != "" {
					s.last = e.id
				}
				return e, true
			}
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		}
	}
	return e, false
}

// rest returns the events up to the end.
func (s *stream) rest() (events []sse) {
	for {
		e, ok := s.next()
		if !ok {
			return events
		}
		events = append(events, e)
	}
}

// until reads up to an event with the name.
func (s *stream) until(name string) (events []sse) {
	s.b.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.b.t.Fatalf("no %s in %v", name, events)
		}
		events = append(events, e)
		if e.name == name {
			return events
		}
	}
}

// named returns the names of events, with their ids.
func named(events []sse) string {
	var text bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&text, "%s %s\n", e.name, e.id)
	}
	return text.String()
}

// hand writes records of one run as its executors would.
type hand struct {
	b        *bed
	run      runlog.Run
	version  uint64
	sequence uint64
	snapshot *harnessv1.Snapshot
}

// started starts a run and returns a hand that continues it.
func (b *bed) started(id string) *hand {
	b.t.Helper()
	body := fmt.Sprintf(`{"run_id":%q,"goal":"do it","workspace":"/work","agent":{"model":"script:x"}}`, id)
	if a := b.post("/v1/runs", body); a.status != http.StatusCreated {
		b.t.Fatalf("%d %s", a.status, a.body)
	}
	run := runlog.Run{Namespace: b.namespace, ID: id}
	v, err := shared.View(b.ctx, run, 0)
	b.must(err)
	return &hand{b: b, run: run, version: v.Newest.Header.Version, sequence: v.Newest.Sequence, snapshot: v.Step.Record.GetStep().GetSnapshot()}
}

func (h *hand) append(rec *harnessv1.Record) *hand {
	h.b.t.Helper()
	h.version++
	rec.Namespace, rec.RunId, rec.Version, rec.PrevSequence = h.run.Namespace, h.run.ID, h.version, h.sequence
	rec.Schema, rec.CommitTime = runlog.Schema, timestamppb.Now()
	rec.Writer = &harnessv1.Writer{Executor: "test", Nonce: h.version}
	sequence, err := shared.Append(h.b.ctx, rec)
	h.b.must(err)
	h.sequence = sequence
	return h
}

func (h *hand) step(to string, change func(*harnessv1.Step), events ...*harnessv1.Event) *hand {
	h.b.t.Helper()
	s := &harnessv1.Step{From: "test", To: to, Snapshot: proto.CloneOf(h.snapshot)}
	if change != nil {
		change(s)
	}
	h.snapshot = s.GetSnapshot()
	return h.append(&harnessv1.Record{Events: events, Body: &harnessv1.Record_Step{Step: s}})
}

// works appends a step with the given number of events.
func (h *hand) works(events int) *hand {
	h.b.t.Helper()
	var all []*harnessv1.Event
	for i := range events {
		all = append(all, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
			CallId: fmt.Sprintf("c%d", i), Tool: "read_file", Arguments: content.Inline(`{"path":"a.txt"}`),
		}}})
	}
	return h.step("repair", func(s *harnessv1.Step) {
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
		s.Snapshot.StopReason = nil
		s.Snapshot.PendingToolCalls = nil
	}, all...)
}

// drained returns the cursor past the last input in the inbox.
func (h *hand) drained() uint64 {
	h.b.t.Helper()
	last, err := shared.LastInbox(h.b.ctx, h.run)
	h.b.must(err)
	return last
}

func (h *hand) park(kind string, pending ...*harnessv1.PendingCall) *hand {
	h.b.t.Helper()
	cursor := h.drained()
	return h.step(runlog.Park, func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor = cursor
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		s.Snapshot.StopReason = &harnessv1.StopReason{Kind: kind}
		s.Snapshot.PendingToolCalls = pending
		s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: s.Snapshot.GetStopReason(), Pending: pending}}
	})
}

func (h *hand) end(answer string) *hand {
	h.b.t.Helper()
	cursor, status := h.drained(), harnessv1.RunStatus_RUN_STATUS_DONE
	return h.step(runlog.End, func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor = cursor
		s.Snapshot.Status = status
		s.Snapshot.StopReason = &harnessv1.StopReason{Kind: "agent_done"}
		s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{
			Status: status, Accepted: true, Reason: s.Snapshot.GetStopReason(), Answer: content.Inline(answer),
		}}
	}, &harnessv1.Event{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{Status: status, Accepted: true}}})
}

func approvalCall(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{CallId: id, Tool: "run_command", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
}
