package follow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// paper is what a printer writes; tests wait for parts of it.
type paper struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newPaper() *paper { return &paper{changed: make(chan struct{})} }

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.buf.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// expect waits until part has been written n times.
func (p *paper) expect(t *testing.T, part string, n int) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		p.mu.Lock()
		got, changed := p.buf.String(), p.changed
		p.mu.Unlock()
		if strings.Count(got, part) >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%q did not come %d times; got:\n%s", part, n, got)
		}
	}
}

// bed is a log with one run, and a gateway to it that can be stopped and started
// on the same port.
type bed struct {
	t       *testing.T
	log     runlog.Log
	run     runlog.Run
	address string
	stop    func()
	client  harnessv1.GatewayServiceClient

	version, sequence uint64
	snapshot          *harnessv1.Snapshot
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, run: runlog.Run{Namespace: "default", ID: "r"}, address: "127.0.0.1:0"}
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	b.must(err)
	t.Cleanup(server.Stop)
	log, err := server.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
	b.must(err)
	t.Cleanup(log.Close)
	b.log = log
	b.snapshot = &harnessv1.Snapshot{CreateTime: timestamppb.Now(), Status: harnessv1.RunStatus_RUN_STATUS_RUNNING}
	b.step("repair")
	b.start()
	t.Cleanup(func() { b.stop() })
	conn, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	b.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	b.client = harnessv1.NewGatewayServiceClient(conn)
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) start() {
	b.t.Helper()
	gateway := gatewayserver.New(gatewayserver.Config{Log: b.log})
	gateway.Start(context.Background())
	listener, err := net.Listen("tcp", b.address)
	b.must(err)
	b.address = listener.Addr().String()
	server := grpc.NewServer(fault.ServerOptions(slog.New(slog.DiscardHandler))...)
	harnessv1.RegisterGatewayServiceServer(server, gateway)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	b.stop = func() {
		server.Stop() // cuts the connections, as a kill does
		gateway.Close()
		<-served
	}
}

func (b *bed) append(rec *harnessv1.Record) {
	b.t.Helper()
	b.version++
	rec.Namespace, rec.RunId, rec.Version, rec.PrevSequence = b.run.Namespace, b.run.ID, b.version, b.sequence
	rec.Schema, rec.CommitTime = runlog.Schema, timestamppb.Now()
	rec.Writer = &harnessv1.Writer{Executor: "test", Nonce: b.version}
	var err error
	b.sequence, err = b.log.Append(b.t.Context(), rec)
	b.must(err)
}

// step hands the run to an executor or a place of rest.
func (b *bed) step(to string) {
	b.t.Helper()
	s := &harnessv1.Step{To: to, Snapshot: proto.CloneOf(b.snapshot)}
	switch to {
	case runlog.End:
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_DONE
		s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{Status: s.Snapshot.Status, Accepted: true, Reason: &harnessv1.StopReason{Kind: "agent_done"}}}
	case runlog.Park:
		s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "interrupted"}}}
	}
	b.append(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: s}, Events: []*harnessv1.Event{
		{Event: &harnessv1.Event_StepEnd{StepEnd: &harnessv1.StepEnd{}}},
		{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}},
	}})
}

// claim begins an attempt at turn 1.
func (b *bed) claim(attempt uint32) {
	b.t.Helper()
	b.append(&harnessv1.Record{
		Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
			TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: attempt}}}},
		Events: []*harnessv1.Event{{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: attempt}}}},
	})
}

func (b *bed) delta(attempt uint32, offset uint64, text string) {
	b.t.Helper()
	b.must(b.log.PublishDelta(b.run, &harnessv1.Delta{TurnNumber: 1, Attempt: attempt, Try: 1, Offset: offset, Text: text}))
}

// thought publishes a piece of reasoning.
func (b *bed) thought(attempt uint32, offset uint64, text string) {
	b.t.Helper()
	b.must(b.log.PublishDelta(b.run, &harnessv1.Delta{TurnNumber: 1, Attempt: attempt, Try: 1, ReasoningOffset: offset, Reasoning: text}))
}

// watch is a Follow call that runs in the background.
type watch struct {
	out, notes *paper
	outcome    *follow.Outcome
	err        chan error
}

func (b *bed) follow(cfg follow.Config) *watch {
	f := &watch{out: newPaper(), notes: newPaper(), err: make(chan error, 1)}
	cfg.Namespace, cfg.Run = b.run.Namespace, b.run.ID
	cfg.Printer = render.NewLines(f.out, f.notes)
	if cfg.Client == nil {
		cfg.Client = b.client
	}
	go func() {
		var err error
		f.outcome, err = follow.Follow(b.t.Context(), cfg)
		f.err <- err
	}()
	return f
}

func (f *watch) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-f.err:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("does not end; out:\n%s\nnotes:\n%s", f.out, f.notes)
		return nil
	}
}

// check fails unless the lines are the events 1-0, 1-1, 2-0 and so on to a version,
// each once and in order, and no text comes twice within an attempt.
func (f *watch) check(t *testing.T, newest uint64) {
	t.Helper()
	seen := map[string]bool{}
	var last, version uint64
	type kind struct {
		name    string
		attempt uint32
	}
	shown := map[kind]uint64{}
	for line := range strings.Lines(f.out.String()) {
		var l struct {
			Type, ID, Text string
			Version        uint64
			Attempt        uint32
			Offset         uint64
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == "delta" || l.Type == "reasoning.delta" {
			of := kind{l.Type, l.Attempt}
			if l.Offset != shown[of] {
				t.Errorf("%v: text at %d after %d: %s", of, l.Offset, shown[of], line)
			}
			shown[of] = l.Offset + uint64(len(l.Text))
			continue
		}
		if version = l.Version; seen[l.ID] || version < last || version > last+1 {
			t.Errorf("%s after version %d", l.ID, last)
		}
		seen[l.ID], last = true, version
	}
	if last != newest {
		t.Errorf("ended at version %d, want %d", last, newest)
	}
}

// full refuses the first streams for a quota of the token.
type full struct {
	harnessv1.GatewayServiceClient
	left atomic.Int32
}

func (f *full) WatchRun(ctx context.Context, q *harnessv1.WatchRunRequest, options ...grpc.CallOption) (grpc.ServerStreamingClient[harnessv1.WatchRunResponse], error) {
	if f.left.Add(-1) >= 0 {
		return nil, status.Error(codes.ResourceExhausted, "this token has 2 open streams and requests, as many as it may: end one")
	}
	return f.GatewayServiceClient.WatchRun(ctx, q, options...)
}

// TestAQuotaIsNamed with its number and what to do, and the stream is opened again.
func TestAQuotaIsNamed(t *testing.T) {
	b := newBed(t)
	client := &full{GatewayServiceClient: b.client}
	client.left.Store(2)
	f := b.follow(follow.Config{Client: client})
	f.notes.expect(t, "the gateway refuses: this token has 2 open streams and requests, as many as it may: end one; retrying", 1)
	f.out.expect(t, `"1-1"`, 1)
	b.step("repair")
	b.step(runlog.End)
	b.must(f.end(t))
}

// A gateway that goes away and comes back, again and again, costs a watcher
// nothing: each event comes once, no text comes twice, and each restart prints two
// notes.
func TestFollowThroughRestarts(t *testing.T) {
	b := newBed(t)
	f := b.follow(follow.Config{})
	f.out.expect(t, `"1-1"`, 1)
	b.claim(1)
	f.out.expect(t, `"2-0"`, 1)
	b.delta(1, 0, "Hello ")
	f.out.expect(t, `"Hello "`, 1)

	b.stop()
	f.notes.expect(t, "the gateway is unavailable; retrying", 1)
	b.delta(1, 6, "nobody hears this ")
	b.step("repair")
	b.start()
	f.notes.expect(t, "gateway back", 1)
	f.out.expect(t, `"3-1"`, 1)
	b.delta(1, 24, "nor knows where this belongs")
	b.claim(2)
	f.out.expect(t, `"4-0"`, 1)
	b.thought(2, 0, "Hm")
	b.delta(2, 0, "Anew")
	f.out.expect(t, `"Anew"`, 1)

	b.stop()
	f.notes.expect(t, "the gateway is unavailable; retrying", 2)
	b.start()
	f.notes.expect(t, "gateway back", 2)
	b.append(&harnessv1.Record{ // shows that the watch is under way
		Body:   &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{}}},
		Events: []*harnessv1.Event{{TurnNumber: 1, Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}}},
	})
	f.out.expect(t, `"5-0"`, 1)
	b.delta(2, 0, "Anew") // the same text, sent again
	b.thought(2, 0, "Hm")
	b.thought(2, 2, ", yes")
	f.out.expect(t, `", yes"`, 1)
	b.delta(2, 4, ", at last")
	f.out.expect(t, `", at last"`, 1)

	b.stop()
	f.notes.expect(t, "the gateway is unavailable; retrying", 3)
	b.step("repair")
	b.step(runlog.End)
	b.start()
	b.must(f.end(t))
	f.check(t, 7)
	if r := f.outcome.Result; r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || !r.GetAccepted() {
		t.Errorf("got %v", r)
	}
	if n := strings.Count(f.notes.String(), "\n"); n != 6 {
		t.Errorf("%d notes, want 6:\n%s", n, f.notes)
	}
}

// A gateway that stays away ends the following with its error.
func TestFollowLosesPatience(t *testing.T) {
	b := newBed(t)
	f := b.follow(follow.Config{Patience: 300 * time.Millisecond})
	f.out.expect(t, `"1-1"`, 1)
	b.stop()
	if err := f.end(t); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	b.start()
}

// fitful is a gateway whose reads of a run sometimes fail.
type fitful struct {
	harnessv1.GatewayServiceClient
	refusals atomic.Int64
	asked    chan struct{}
}

func (c *fitful) GetRun(ctx context.Context, r *harnessv1.GetRunRequest, o ...grpc.CallOption) (*harnessv1.GetRunResponse, error) {
	defer func() {
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}()
	if c.refusals.Add(-1) >= 0 {
		return nil, status.Error(codes.Unavailable, "away")
	}
	return c.GatewayServiceClient.GetRun(ctx, r, o...)
}

// An end or a pause in a run's history is not taken for the current one if the
// gateway is away when the client reads the status of the run.
func TestFollowReadsPastAnOldPause_WhenTheGatewayIsAway(t *testing.T) {
	b := newBed(t)
	b.step(runlog.Park)
	b.step("repair")
	client := &fitful{GatewayServiceClient: b.client, asked: make(chan struct{}, 1)}
	client.refusals.Store(1)
	f := b.follow(follow.Config{Client: client})
	<-client.asked
	f.out.expect(t, `"3-1"`, 1)
	b.step(runlog.End)
	b.must(f.end(t))
	f.check(t, 4)
	if s := f.outcome.Result.GetStatus(); s != harnessv1.RunStatus_RUN_STATUS_DONE {
		t.Errorf("got %v", s)
	}
}

// An answer to an approval that the gateway is not there to take is given again,
// under the same id.
func TestAnAnswerWhileTheGatewayIsAway(t *testing.T) {
	b := newBed(t)
	call := &harnessv1.PendingCall{CallId: "c1", Tool: "run_command", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	s := &harnessv1.Step{To: runlog.Park, Snapshot: proto.CloneOf(b.snapshot)}
	s.Snapshot.PendingToolCalls = []*harnessv1.PendingCall{call}
	s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "approval"}, Pending: s.Snapshot.GetPendingToolCalls()}}
	b.append(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: s}})

	keys, keyboard := net.Pipe()
	defer keyboard.Close()
	screen := newPaper()
	f := b.follow(follow.Config{Prompt: follow.NewPrompt(keys, screen, follow.Screen{Style: func() render.Style { return render.Style{} }})})
	screen.expect(t, "[n] no: ", 1)
	b.stop()
	f.notes.expect(t, "the gateway is unavailable; retrying", 1)
	fmt.Fprintln(keyboard, "y")
	b.start()
	var items []*harnessv1.InboxItem
	for len(items) == 0 { // the answer arrives
		last, err := b.log.LastInbox(t.Context(), b.run)
		b.must(err)
		items, err = b.log.Inbox(t.Context(), b.run, 0, last)
		b.must(err)
	}
	b.append(&harnessv1.Record{
		Body:   &harnessv1.Record_Step{Step: &harnessv1.Step{To: "repair", Snapshot: b.snapshot}},
		Events: []*harnessv1.Event{{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{ItemId: items[0].GetId(), Kind: "approval"}}}},
	})
	b.snapshot.InboxCursor = items[0].GetSequence()
	b.step(runlog.End)
	b.must(f.end(t))
	if len(items) != 1 || items[0].GetApproval().GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE || len(f.outcome.Rejected) > 0 {
		t.Errorf("got %v, rejected %v", items, f.outcome.Rejected)
	}
}
