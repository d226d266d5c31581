// Package harnesstest runs the program in tests: in the process of a test or as a separate
// process, against a gateway whose runs the test scripts, or on a data directory.
package harnesstest

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
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

func (f *Gateway) Approvals() []*harnessv1.Approval {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var all []*harnessv1.Approval
	for _, input := range f.Inputs {
		all = append(all, input.(*harnessv1.Approval))
	}
	return all
}

// Gateway is a gateway whose runs do what a test tells them. It is served over a
// real connection.
type Gateway struct {
	// Blobs are parts of texts by digest; any other text names its digest.
	Blobs map[string][]string
	// Prompt is the system prompt of conversations; empty: none.
	Prompt string

	harnessv1.UnimplementedGatewayServiceServer
	Address string

	// Started is called for each new run, in a separate goroutine.
	Started func(*Run)
	// Took is called for each input, in a separate goroutine.
	Took func(r *Run, id string, input proto.Message)

	// Watched is called, in a separate goroutine, for each watch.
	Watched func(*Run)

	Mu     sync.Mutex
	Runs   map[string]*Run
	Inputs []proto.Message
	Starts []*harnessv1.StartRunRequest
	Cuts   int    // watches that are cut after one event
	Late   bool   // every answer comes second
	Refuse string // why no approval is accepted
	work   sync.WaitGroup
}

func ServeGateway(t *testing.T) *Gateway {
	t.Helper()
	f := &Gateway{
		Runs: map[string]*Run{}, Started: func(r *Run) { r.Done() },
		Took: func(*Run, string, proto.Message) {},
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f.Address = "unix:" + socket
	server := grpc.NewServer()
	harnessv1.RegisterGatewayServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		f.work.Wait()
	})
	return f
}

// Add puts a run into the gateway.
func (f *Gateway) Add(id, namespace string, spec *harnessv1.RunSpec) *Run {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	r := &Run{
		F: f, spec: spec, changed: make(chan struct{}),
		Run: &harnessv1.Run{
			Namespace: namespace, RunId: id, Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, MaxTurns: 50, Version: 1,
			Goal: spec.GetGoal().GetInline(), Model: spec.GetAgent().GetModel(), Segment: 1, StartedBy: "nina", Features: []string{"short", "wide"},
			CreateTime: timestamppb.New(fixed), UpdateTime: timestamppb.New(fixed),
		},
	}
	f.Runs[id] = r
	return r
}

var fixed = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Behave sets what runs do, where another process is about to make them do it.
func (f *Gateway) Behave(started func(*Run), took func(*Run, string, proto.Message)) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Started, f.Took = started, took
}

func (f *Gateway) spawn(do func()) {
	f.work.Add(1)
	go func() {
		defer f.work.Done()
		do()
	}()
}

func (f *Gateway) find(id string) (*Run, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if r := f.Runs[id]; r != nil {
		return r, nil
	}
	return nil, refusal(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND, "run default/"+id+" not found")
}

func refusal(code codes.Code, reason harnessv1.ErrorReason, text string) error {
	st, _ := fault.Status(fault.New(code, reason, text))
	return st.Err()
}

var GeneratedID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^r-[a-z2-7]{8}$`) })

func (f *Gateway) StartRun(_ context.Context, q *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	f.Mu.Lock()
	f.Starts = append(f.Starts, q)
	id := q.GetRunId()
	if GeneratedID().MatchString(id) { // tests know the order of runs, not their ids
		id = fmt.Sprintf("r%d", len(f.Starts))
	}
	_, existed := f.Runs[id]
	started := f.Started
	f.Mu.Unlock()
	if !existed {
		r := f.Add(id, q.GetNamespace(), q.GetSpec())
		f.spawn(func() { started(r) })
	}
	return &harnessv1.StartRunResponse{Namespace: q.GetNamespace(), RunId: id, Existed: existed}, nil
}

func (f *Gateway) WatchRun(q *harnessv1.WatchRunRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunResponse]) error {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return err
	}
	f.Mu.Lock()
	next, newest := 0, r.Run.Version
	cut := f.Cuts > 0
	if cut {
		f.Cuts--
	}
	f.Mu.Unlock()
	if f.Watched != nil {
		f.spawn(func() { f.Watched(r) })
	}
	send := func(u *harnessv1.RunUpdate) error { return stream.Send(&harnessv1.WatchRunResponse{Update: u}) }
	if err := send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Attached{Attached: &harnessv1.Attached{RunId: r.Run.RunId, Version: newest}}}); err != nil {
		return err
	}
	for {
		f.Mu.Lock()
		pending, changed := r.updates[next:], r.changed
		next = len(r.updates)
		ended := r.result != nil && r.result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED
		f.Mu.Unlock()
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

func (f *Gateway) GetRun(_ context.Context, q *harnessv1.GetRunRequest) (*harnessv1.GetRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return &harnessv1.GetRunResponse{Run: proto.CloneOf(r.Run), Result: r.result, Spec: r.spec}, nil
}

func (f *Gateway) input(run, id string, input proto.Message) error {
	r, err := f.find(run)
	if err != nil {
		return err
	}
	f.Mu.Lock()
	f.Inputs = append(f.Inputs, input)
	took := f.Took
	f.Mu.Unlock()
	f.spawn(func() { took(r, id, input) })
	return nil
}

func (f *Gateway) SendInput(_ context.Context, q *harnessv1.SendInputRequest) (*harnessv1.SendInputResponse, error) {
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
	f.Mu.Lock()
	late, refuse := f.Late && q.GetUserMessage() == nil, f.Refuse
	f.Mu.Unlock()
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
func (f *Gateway) steerable(q *harnessv1.SendInputRequest) error {
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
	f.Mu.Lock()
	defer f.Mu.Unlock()
	said := slices.ContainsFunc(f.Inputs, func(m proto.Message) bool { _, ok := m.(*harnessv1.UserMessage); return ok })
	if target.HasEnded(r.Run.GetStatus()) && !said {
		return refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED, "run default/"+q.GetRunId()+" has ended; send it a message first")
	}
	return nil
}

func (f *Gateway) InterruptRun(_ context.Context, q *harnessv1.InterruptRunRequest) (*harnessv1.InterruptRunResponse, error) {
	return &harnessv1.InterruptRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Interrupt{Reason: q.GetReason()})
}

func (f *Gateway) CancelRun(_ context.Context, q *harnessv1.CancelRunRequest) (*harnessv1.CancelRunResponse, error) {
	return &harnessv1.CancelRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Cancel{Reason: q.GetReason()})
}

func (f *Gateway) ResumeRun(_ context.Context, q *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.Mu.Lock()
	s := r.Run.GetStatus()
	f.Mu.Unlock()
	switch s {
	case harnessv1.RunStatus_RUN_STATUS_RUNNING:
		return &harnessv1.ResumeRunResponse{AlreadyRunning: true}, nil
	case harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return &harnessv1.ResumeRunResponse{}, f.input(q.GetRunId(), q.GetRequestId(), &harnessv1.Resume{Budgets: q.GetBudgets()})
	}
	return nil, refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED, "the run has ended")
}

func (f *Gateway) ListRuns(_ context.Context, q *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var runs []*harnessv1.Run
	for _, id := range slices.Sorted(maps.Keys(f.Runs)) {
		if r := f.Runs[id]; len(q.GetStatuses()) == 0 || q.GetStatuses()[0] == r.Run.GetStatus() {
			runs = append(runs, r.Run)
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
func (f *Gateway) ListPending(_ context.Context, q *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	if q.GetRunId() != "" {
		if _, err := f.find(q.GetRunId()); err != nil {
			return nil, err
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	ids := slices.Sorted(maps.Keys(f.Runs))
	if q.GetRunId() != "" {
		ids = []string{q.GetRunId()}
	}
	at, _ := strconv.Atoi(q.GetPageToken())
	answer := &harnessv1.ListPendingResponse{}
	if at+1 < len(ids) {
		answer.NextPageToken = strconv.Itoa(at + 1)
	}
	for _, p := range f.Runs[ids[at]].result.GetPending() {
		answer.Pending = append(answer.Pending, &harnessv1.PendingInRun{Namespace: f.Runs[ids[at]].Run.GetNamespace(), RunId: ids[at], Call: p})
	}
	return answer, nil
}

func (f *Gateway) DeleteRun(_ context.Context, q *harnessv1.DeleteRunRequest) (*harnessv1.DeleteRunResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if r.Run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
		return nil, refusal(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE, "the run works; cancel it first")
	}
	existed := r.Deleted
	r.Deleted = true
	return &harnessv1.DeleteRunResponse{Existed: existed}, nil
}

func (f *Gateway) GetBlob(q *harnessv1.GetBlobRequest, stream grpc.ServerStreamingServer[harnessv1.GetBlobResponse]) error {
	parts := f.Blobs[q.GetDigest()]
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

func (f *Gateway) GetConversation(context.Context, *harnessv1.GetConversationRequest) (*harnessv1.GetConversationResponse, error) {
	var prompt []*harnessv1.Message
	if f.Prompt != "" {
		prompt = append(prompt, &harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline(f.Prompt)})
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

func (f *Gateway) GetState(_ context.Context, q *harnessv1.GetStateRequest) (*harnessv1.GetStateResponse, error) {
	r, err := f.find(q.GetRunId())
	if err != nil {
		return nil, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	state := r.State
	if state == nil {
		state = &harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 2}
	}
	return &harnessv1.GetStateResponse{Version: q.GetVersion(), StepVersion: 3, Snapshot: proto.CloneOf(state)}, nil
}

// GetContext answers in pages of 5 messages.
func (f *Gateway) GetContext(_ context.Context, q *harnessv1.GetContextRequest) (*harnessv1.GetContextResponse, error) {
	if _, err := f.find(q.GetRunId()); err != nil {
		return nil, err
	}
	if q.GetVersion() > 100 {
		return nil, fault.Invalid("version", "%d: run default/%s has versions up to 100", q.GetVersion(), q.GetRunId())
	}
	r := sightOf(q.GetVersion())
	from := 0
	if q.GetPageToken() != "" {
		_, _ = fmt.Sscan(q.GetPageToken(), &from)
		r.Plan = nil
	}
	to := min(from+5, len(r.GetItems()))
	if r.Items = r.GetItems()[from:to]; to < int(r.GetTotalItems()) {
		r.NextPageToken, r.DigestMatches = fmt.Sprint(to), nil
	}
	return r, nil
}
