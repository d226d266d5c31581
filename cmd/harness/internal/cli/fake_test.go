package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// fake is a gateway whose runs do what a test tells them. It is served over a
// real connection.
type fake struct {
	// blobs are parts of texts by digest; any other text names its digest.
	blobs map[string][]string
	// prompt is the system prompt of conversations; empty: none.
	prompt string

	harnessv1.UnimplementedGatewayServiceServer
	address string

	// started is called for each new run, in a separate goroutine.
	started func(*fakeRun)
	// took is called for each input, in a separate goroutine.
	took func(r *fakeRun, id string, input proto.Message)

	// watched is called, in a separate goroutine, for each watch.
	watched func(*fakeRun)

	mu     sync.Mutex
	runs   map[string]*fakeRun
	inputs []proto.Message
	starts []*harnessv1.StartRunRequest
	cuts   int    // watches that are cut after one event
	late   bool   // every answer comes second
	refuse string // why no approval is accepted
	work   sync.WaitGroup
}

type fakeRun struct {
	f       *fake
	spec    *harnessv1.RunSpec
	run     *harnessv1.Run
	result  *harnessv1.HarnessResult
	state   *harnessv1.Snapshot
	deleted bool
	updates []fakeUpdate
	changed chan struct{}
}

type fakeUpdate struct {
	version uint64
	update  *harnessv1.RunUpdate
}

func serveFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		runs: map[string]*fakeRun{}, started: func(r *fakeRun) { r.done() },
		took: func(*fakeRun, string, proto.Message) {},
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f.address = "unix:" + socket
	server := grpc.NewServer()
	harnessv1.RegisterGatewayServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		f.work.Wait()
	})
	return f
}

// add puts a run into the gateway.
func (f *fake) add(id, namespace string, spec *harnessv1.RunSpec) *fakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &fakeRun{
		f: f, spec: spec, changed: make(chan struct{}),
		run: &harnessv1.Run{
			Namespace: namespace, RunId: id, Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, MaxTurns: 50, Version: 1,
			Goal: spec.GetGoal().GetInline(), Model: spec.GetAgent().GetModel(), Segment: 1, StartedBy: "nina",
			CreateTime: timestamppb.New(fixed), UpdateTime: timestamppb.New(fixed),
		},
	}
	f.runs[id] = r
	return r
}

var fixed = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func (r *fakeRun) put(version uint64, u *harnessv1.RunUpdate) {
	r.updates = append(r.updates, fakeUpdate{version, u})
	close(r.changed)
	r.changed = make(chan struct{})
}

// event commits an event.
func (r *fakeRun) event(e *harnessv1.Event) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.run.Version++
	e.Version, e.Id, e.Time = r.run.Version, fmt.Sprintf("%d-0", r.run.Version), timestamppb.New(fixed)
	if e.TurnNumber == 0 {
		e.TurnNumber = r.run.TurnCount
	}
	e.MaxTurns = r.run.MaxTurns
	r.put(e.Version, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Event{Event: e}})
}

func (r *fakeRun) delta(d *harnessv1.Delta) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.put(r.run.Version+1, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Delta{Delta: d}})
}

// rest parks or ends the run with a result.
func (r *fakeRun) rest(result *harnessv1.HarnessResult) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if result.Duration == nil {
		result.Duration = durationpb.New(1500 * time.Millisecond)
	}
	r.run.Version++
	r.run.Status, r.run.Reason, r.result = result.GetStatus(), result.GetReason(), result
	r.put(r.run.Version, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Result{Result: result}})
}

func (r *fakeRun) done() {
	r.rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, Answer: content.Inline("the answer"), TurnCount: 1,
		Reason: &harnessv1.StopReason{Kind: "agent_done", Message: "The agent is done."},
	})
}

// parked parks the run until each call is approved.
func (r *fakeRun) parked(calls ...string) {
	var pending []*harnessv1.PendingCall
	for _, id := range calls {
		pending = append(pending, anApproval(id))
	}
	r.waits(pending...)
}

// waits parks the run until the calls have answers.
func (r *fakeRun) waits(calls ...*harnessv1.PendingCall) {
	kind := "approval"
	if len(calls) > 0 {
		kind = calls[0].GetKind()
	}
	r.rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Pending: calls,
		Reason: &harnessv1.StopReason{Kind: kind, Message: "A call waits for an answer."},
	})
}

func anApproval(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "run_command", Arguments: content.Inline(`{"command":"make ` + id + `"}`), Kind: "approval",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: "It runs a command.",
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
	}
}

func aQuestion(id, arguments string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "ask_user", Arguments: content.Inline(arguments), Kind: "question",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: "Which colour?", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
	}
}

func aClientCall(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "lookup_order", Arguments: content.Inline(`{"id":12}`), Kind: "client_tool",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT,
	}
}

// accept takes an input in; the run runs again.
func (r *fakeRun) accept(id, kind string) {
	r.f.mu.Lock()
	r.run.Status, r.run.Reason, r.result = harnessv1.RunStatus_RUN_STATUS_RUNNING, nil, nil
	r.f.mu.Unlock()
	r.event(&harnessv1.Event{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{ItemId: id, Kind: kind}}})
}

func (r *fakeRun) interrupted(id string) {
	r.accept(id, "interrupt")
	r.event(&harnessv1.Event{Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: "asked"}}})
	r.rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED,
		Reason: &harnessv1.StopReason{Kind: "interrupted", Message: "The run was interrupted."},
	})
}

// behave sets what runs do, where another process is about to make them do it.
func (f *fake) behave(started func(*fakeRun), took func(*fakeRun, string, proto.Message)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started, f.took = started, took
}

func (f *fake) spawn(do func()) {
	f.work.Add(1)
	go func() {
		defer f.work.Done()
		do()
	}()
}

func (f *fake) find(id string) (*fakeRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[id]; r != nil {
		return r, nil
	}
	return nil, refusal(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND, "run default/"+id+" not found")
}

func refusal(code codes.Code, reason harnessv1.ErrorReason, text string) error {
	st, _ := fault.Status(fault.New(code, reason, text))
	return st.Err()
}

var generatedID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^r-[a-z2-7]{8}$`) })

func (f *fake) StartRun(_ context.Context, q *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	f.mu.Lock()
	f.starts = append(f.starts, q)
	id := q.GetRunId()
	if generatedID().MatchString(id) { // tests know the order of runs, not their ids
		id = fmt.Sprintf("r%d", len(f.starts))
	}
	_, existed := f.runs[id]
	started := f.started
	f.mu.Unlock()
	if !existed {
		r := f.add(id, q.GetNamespace(), q.GetSpec())
		f.spawn(func() { started(r) })
	}
	return &harnessv1.StartRunResponse{Namespace: q.GetNamespace(), RunId: id, Existed: existed}, nil
}

func (f *fake) WatchRun(q *harnessv1.WatchRunRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunResponse]) error {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return err
	}
	f.mu.Lock()
	next, newest := 0, r.run.Version
	cut := f.cuts > 0
	if cut {
		f.cuts--
	}
	f.mu.Unlock()
	if f.watched != nil {
		f.spawn(func() { f.watched(r) })
	}
	send := func(u *harnessv1.RunUpdate) error { return stream.Send(&harnessv1.WatchRunResponse{Update: u}) }
	if err := send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Attached{Attached: &harnessv1.Attached{RunId: r.run.RunId, Version: newest}}}); err != nil {
		return err
	}
	for {
		f.mu.Lock()
		pending, changed := r.updates[next:], r.changed
		next = len(r.updates)
		ended := r.result != nil && r.result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED
		f.mu.Unlock()
		for _, u := range pending {
			if u.version <= q.GetAfterVersion() || u.update.GetDelta() != nil && q.GetNoDeltas() {
				continue
			}
			if err := send(u.update); err != nil {
				return err
			}
			if cut {
				return status.Error(codes.Unavailable, "cut")
			}
		}
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (f *fake) GetRun(_ context.Context, q *harnessv1.GetRunRequest) (*harnessv1.GetRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &harnessv1.GetRunResponse{Run: proto.CloneOf(r.run), Result: r.result, Spec: r.spec}, nil
}

func (f *fake) input(run, id string, input proto.Message) error {
	r, err := f.find(run)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.inputs = append(f.inputs, input)
	took := f.took
	f.mu.Unlock()
	f.spawn(func() { took(r, id, input) })
	return nil
}

func (f *fake) SendInput(_ context.Context, q *harnessv1.SendInputRequest) (*harnessv1.SendInputResponse, error) {
	var input proto.Message = q.GetUserMessage()
	switch {
	case q.GetApproval() != nil:
		input = q.GetApproval()
	case q.GetToolAnswer() != nil:
		input = q.GetToolAnswer()
	case q.GetModeChange() != nil:
		input = q.GetModeChange()
	case q.GetReplan() != nil:
		input = q.GetReplan()
	}
	if err := f.steerable(q); err != nil {
		return nil, err
	}
	f.mu.Lock()
	late, refuse := f.late && q.GetUserMessage() == nil, f.refuse
	f.mu.Unlock()
	if refuse != "" && q.GetApproval() != nil {
		return nil, refusal(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD, refuse)
	}
	if late {
		return nil, refusal(codes.AlreadyExists, harnessv1.ErrorReason_ERROR_REASON_CALL_ANSWERED, "the call already has an answer")
	}
	return &harnessv1.SendInputResponse{RequestId: q.GetRequestId()}, f.input(q.GetRunId(), q.GetRequestId(), input)
}

// steerable refuses an unknown mode, and an input that an ended run accepts only
// after a message.
func (f *fake) steerable(q *harnessv1.SendInputRequest) error {
	if q.GetModeChange() == nil && q.GetReplan() == nil {
		return nil
	}
	if q.GetModeChange().GetMode() == "hasty" {
		return refusal(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD, `mode_change.mode: unknown mode "hasty": must be one of plan, execute`)
	}
	r, err := f.find(q.GetRunId())
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	said := slices.ContainsFunc(f.inputs, func(m proto.Message) bool { _, ok := m.(*harnessv1.UserMessage); return ok })
	if hasEnded(r.run.GetStatus()) && !said {
		return refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED, "run default/"+q.GetRunId()+" has ended; send it a message first")
	}
	return nil
}

func (f *fake) InterruptRun(_ context.Context, q *harnessv1.InterruptRunRequest) (*harnessv1.InterruptRunResponse, error) {
	return &harnessv1.InterruptRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Interrupt{Reason: q.GetReason()})
}

func (f *fake) CancelRun(_ context.Context, q *harnessv1.CancelRunRequest) (*harnessv1.CancelRunResponse, error) {
	return &harnessv1.CancelRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Cancel{Reason: q.GetReason()})
}

func (f *fake) ResumeRun(_ context.Context, q *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	s := r.run.GetStatus()
	f.mu.Unlock()
	switch s {
	case harnessv1.RunStatus_RUN_STATUS_RUNNING:
		return &harnessv1.ResumeRunResponse{AlreadyRunning: true}, nil
	case harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return &harnessv1.ResumeRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Resume{Budgets: q.GetBudgets()})
	}
	return nil, refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED, "the run has ended")
}

func (f *fake) ListRuns(_ context.Context, q *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var runs []*harnessv1.Run
	for _, id := range slices.Sorted(maps.Keys(f.runs)) {
		if r := f.runs[id]; len(q.GetStatuses()) == 0 || q.GetStatuses()[0] == r.run.GetStatus() {
			runs = append(runs, r.run)
		}
	}
	// One run on a page, so that the token is seen to be used.
	at, _ := strconv.Atoi(q.GetPageToken())
	answer := &harnessv1.ListRunsResponse{}
	if at < len(runs) {
		answer.Runs = runs[at : at+1]
	}
	if at+1 < len(runs) {
		answer.NextPageToken = strconv.Itoa(at + 1)
	}
	return answer, nil
}

// ListPending has one run on a page, so that the token is seen to be used.
func (f *fake) ListPending(_ context.Context, q *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	if q.GetRunId() != "" {
		if _, err := f.find(q.GetRunId()); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := slices.Sorted(maps.Keys(f.runs))
	if q.GetRunId() != "" {
		ids = []string{q.GetRunId()}
	}
	at, _ := strconv.Atoi(q.GetPageToken())
	answer := &harnessv1.ListPendingResponse{}
	if at+1 < len(ids) {
		answer.NextPageToken = strconv.Itoa(at + 1)
	}
	for _, p := range f.runs[ids[at]].result.GetPending() {
		answer.Pending = append(answer.Pending, &harnessv1.PendingInRun{Namespace: f.runs[ids[at]].run.GetNamespace(), RunId: ids[at], Call: p})
	}
	return answer, nil
}

func (f *fake) DeleteRun(_ context.Context, q *harnessv1.DeleteRunRequest) (*harnessv1.DeleteRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
		return nil, refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE, "the run works; cancel it first")
	}
	existed := r.deleted
	r.deleted = true
	return &harnessv1.DeleteRunResponse{Existed: existed}, nil
}

func (f *fake) GetBlob(q *harnessv1.GetBlobRequest, stream grpc.ServerStreamingServer[harnessv1.GetBlobResponse]) error {
	parts := f.blobs[q.GetDigest()]
	if parts == nil {
		parts = []string{"the whole ", "text of " + q.GetDigest()}
	}
	for _, part := range parts {
		if err := stream.Send(&harnessv1.GetBlobResponse{Chunk: []byte(part)}); err != nil {
			return err
		}
	}
	return nil
}

func reasoningPart(text string) *harnessv1.Part_Reasoning {
	return &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline(text)}}
}

func (f *fake) GetConversation(context.Context, *harnessv1.GetConversationRequest) (*harnessv1.GetConversationResponse, error) {
	var prompt []*harnessv1.Message
	if f.prompt != "" {
		prompt = append(prompt, &harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline(f.prompt)})
	}
	return &harnessv1.GetConversationResponse{Messages: append(prompt, []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("Mend it."), Parts: media.Parts([]*harnessv1.Media{
			{Type: media.PNG, Width: 1280, Height: 720, Name: "chart.png", Blob: &harnessv1.BlobRef{Digest: "d1", Size: 245_760}},
			{Type: media.PDF, Pages: 40, Blob: &harnessv1.BlobRef{Digest: "d2", Size: 1 << 20}},
		})},
		{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, Content: content.Inline("Looking."), ToolCalls: []*harnessv1.ToolCall{
			{Id: "c1", Name: "read_file", Arguments: content.Inline(`{"path":"a.txt"}`)},
		}},
		{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c1", ToolName: "read_file", IsError: true, Content: content.Inline("no such file")},
		{
			Id: 4, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 2, Content: content.Inline("It is gone. I look around."),
			ToolCalls: []*harnessv1.ToolCall{{Id: "c2", Name: "list_directory", Arguments: content.Inline(`{}`)}, {Id: "c3", Name: "find_files", Arguments: content.Inline(`{"pattern":"*.txt"}`)}},
			Parts: []*harnessv1.Part{
				{Kind: reasoningPart("No file.\nIs it\x1b[2J elsewhere?")}, {Kind: &harnessv1.Part_Text{Text: 12}}, {Kind: &harnessv1.Part_Call{Call: 0}},
				{Kind: reasoningPart("")}, {Kind: &harnessv1.Part_Text{Text: 14}}, {Kind: &harnessv1.Part_Call{Call: 1}},
			},
		},
	}...)}, nil
}

func (f *fake) GetState(_ context.Context, q *harnessv1.GetStateRequest) (*harnessv1.GetStateResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	state := r.state
	if state == nil {
		state = &harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 2}
	}
	return &harnessv1.GetStateResponse{Version: q.GetVersion(), StepVersion: 3, Snapshot: proto.CloneOf(state)}, nil
}
