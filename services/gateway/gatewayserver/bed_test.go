package gatewayserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// shared is the log that all tests write to, each in a separate namespace, on
// the server nats.
var (
	shared runlog.Log
	nats   *jetstream.EmbeddedServer
)

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
	dir, err := os.MkdirTemp("", "gatewayserver")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	nats, err = jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: dir})
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

// bed is a gateway on a loopback listener, a client of it, and a namespace.
type bed struct {
	t         testing.TB
	ctx       context.Context
	log       runlog.Log
	config    gatewayserver.Config
	server    *gatewayserver.Server
	address   string
	client    harnessv1.GatewayServiceClient
	namespace string
	// stop ends all streams and closes all connections.
	stop func()
}

var beds atomic.Int64

func newBed(t testing.TB, change ...func(*gatewayserver.Config)) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	b := &bed{t: t, ctx: ctx, config: gatewayserver.Config{Log: shared, Profiles: profile.New(profile.Config{Values: shared})}, namespace: fmt.Sprintf("ns%d", beds.Add(1)), address: "127.0.0.1:0"}
	for _, f := range change {
		f(&b.config)
	}
	b.log = shared
	b.serve()
	b.client = b.dial()
	t.Cleanup(func() { b.stop() })
	return b
}

// serve starts a gateway on the bed's address.
func (b *bed) serve() {
	b.t.Helper()
	server := gatewayserver.New(b.config)
	server.Start(b.ctx)
	b.eventually("the server is ready", func() bool { return server.Ready() == nil })
	listener, err := net.Listen("tcp", b.address)
	b.must(err)
	rpc := grpc.NewServer(fault.ServerOptions(slog.New(slog.DiscardHandler))...)
	harnessv1.RegisterGatewayServiceServer(rpc, server)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = rpc.Serve(listener)
	}()
	b.server, b.address = server, listener.Addr().String()
	b.stop = func() {
		server.Close()
		rpc.Stop()
		<-served
	}
}

// dial opens a new connection to the gateway.
func (b *bed) dial() harnessv1.GatewayServiceClient {
	b.t.Helper()
	conn, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	b.must(err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return harnessv1.NewGatewayServiceClient(conn)
}

// restart ends the gateway and starts another one on the same port.
func (b *bed) restart() {
	b.t.Helper()
	b.stop()
	b.serve()
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// refused fails the test unless err has the code and the reason.
func (b *bed) refused(err error, code codes.Code, reason string) {
	b.t.Helper()
	if status.Code(err) != code || fault.ReasonOf(err) != reason {
		b.t.Fatalf("got %v (%s), want %s %s", err, fault.ReasonOf(err), code, reason)
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

func (b *bed) spec(goal string) *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Goal:      content.Inline(goal),
		Workspace: "/work",
		Agent:     &harnessv1.AgentSpec{Model: "script:x"},
	}
}

func (b *bed) start(id, goal string) *harnessv1.StartRunRequest {
	return &harnessv1.StartRunRequest{Namespace: b.namespace, RunId: id, Spec: b.spec(goal)}
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
	_, err := b.client.StartRun(b.ctx, b.start(id, "do it"))
	b.must(err)
	return b.openRun(id)
}

func (b *bed) openRun(id string) *hand {
	b.t.Helper()
	run := runlog.Run{Namespace: b.namespace, ID: id}
	v, err := b.log.View(b.ctx, run, 0)
	b.must(err)
	return &hand{b: b, run: run, version: v.Newest.Header.Version, sequence: v.Newest.Sequence, snapshot: proto.CloneOf(v.Step.Record.GetStep().GetSnapshot())}
}

func (h *hand) append(rec *harnessv1.Record) *hand {
	h.b.t.Helper()
	h.version++
	rec.Namespace, rec.RunId, rec.Version, rec.PrevSequence = h.run.Namespace, h.run.ID, h.version, h.sequence
	rec.Schema, rec.CommitTime = runlog.Schema, timestamppb.Now()
	rec.Writer = &harnessv1.Writer{Executor: "test", Nonce: h.version}
	sequence, err := h.b.log.Append(h.b.ctx, rec)
	h.b.must(err)
	h.sequence = sequence
	return h
}

// step appends a step to an executor, to park or to end. Snapshots of stored
// records are shared, so each step has a copy.
func (h *hand) step(to string, change func(*harnessv1.Step), events ...*harnessv1.Event) *hand {
	h.b.t.Helper()
	s := &harnessv1.Step{From: "test", To: to, Snapshot: proto.CloneOf(h.snapshot)}
	if change != nil {
		change(s)
	}
	h.snapshot = s.GetSnapshot()
	return h.append(&harnessv1.Record{Events: events, Body: &harnessv1.Record_Step{Step: s}})
}

func (h *hand) journal(j *harnessv1.Journal, appended []*harnessv1.Message, events ...*harnessv1.Event) *hand {
	h.b.t.Helper()
	return h.append(&harnessv1.Record{Appended: appended, Events: events, Body: &harnessv1.Record_Journal{Journal: j}})
}

// drained returns the cursor past the last input in the inbox.
func (h *hand) drained() uint64 {
	h.b.t.Helper()
	last, err := h.b.log.LastInbox(h.b.ctx, h.run)
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

func (h *hand) end(status harnessv1.RunStatus) *hand {
	h.b.t.Helper()
	cursor := h.drained()
	return h.step(runlog.End, func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor = cursor
		s.Snapshot.Status = status
		s.Snapshot.StopReason = &harnessv1.StopReason{Kind: "agent_done"}
		s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{Status: status, Reason: s.Snapshot.GetStopReason()}}
	}, &harnessv1.Event{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{Status: status}}})
}

// resume appends a step to repair that continues the run.
func (h *hand) resume() *hand {
	h.b.t.Helper()
	cursor := h.drained()
	return h.step("repair", func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor = cursor
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
		s.Snapshot.StopReason = nil
	}, &harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{Cause: "resume"}}})
}

func approvalCall(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{CallId: id, Tool: "run_command", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
}

// watched collects updates of a watch until it ends.
func (b *bed) watched(r *harnessv1.WatchRunRequest) ([]string, error) {
	b.t.Helper()
	r.Namespace = b.namespace
	stream, err := b.client.WatchRun(b.ctx, r)
	b.must(err)
	var lines []string
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, line(resp.GetUpdate()))
	}
}

// line returns a short form of an update.
func line(u *harnessv1.RunUpdate) string {
	switch u := u.GetUpdate().(type) {
	case *harnessv1.RunUpdate_Attached:
		return fmt.Sprintf("attached %d", u.Attached.GetVersion())
	case *harnessv1.RunUpdate_Event:
		name := u.Event.ProtoReflect().WhichOneof(u.Event.ProtoReflect().Descriptor().Oneofs().ByName("event")).Name()
		text := ""
		if m := u.Event.GetModelResponse(); m != nil {
			text = " " + content.Text(m.GetText())
		}
		return fmt.Sprintf("%s %s%s", u.Event.GetId(), name, text)
	case *harnessv1.RunUpdate_Delta:
		return "delta " + u.Delta.GetText()
	case *harnessv1.RunUpdate_Result:
		return "result " + u.Result.GetStatus().String()[len("RUN_STATUS_"):] + " " + u.Result.GetReason().GetKind()
	case *harnessv1.RunUpdate_Receipt:
		return "receipt " + u.Receipt.GetRequestId() + " " + u.Receipt.GetReason()
	}
	return "?"
}
