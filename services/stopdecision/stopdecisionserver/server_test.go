package stopdecisionserver_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/stopdecision/stopdecisionserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

const (
	met   = harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET
	unmet = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
)

// bed is a run log with a stop decision worker and its tool host.
type bed struct {
	*steptest.Bed
	host      harnessv1.ToolHostServiceClient
	server    *stopdecisionserver.Server
	workspace string
}

// newBed makes a worker that does not run yet. intercept sees the calls of its tool
// host.
func newBed(t *testing.T, intercept grpc.UnaryServerInterceptor) *bed {
	t.Helper()
	return newBedOn(steptest.New(t), t, intercept)
}

// newBedWithoutHeartbeats is newBed on a bus on which only a poke makes a worker read
// its inbox.
func newBedWithoutHeartbeats(t *testing.T) *bed {
	t.Helper()
	return newBedOn(steptest.NewLayout(t, jetstream.Layout{Takeover: steptest.WithoutHeartbeats}), t, nil)
}

func newBedOn(on *steptest.Bed, t *testing.T, intercept grpc.UnaryServerInterceptor) *bed {
	t.Helper()
	b := &bed{Bed: on, host: steptest.ToolHost(t, intercept), workspace: t.TempDir()}
	pool := &remote.Pool{}
	t.Cleanup(pool.Close)
	b.server = stopdecisionserver.New(stopdecisionserver.Config{
		Log: b.Log, ToolHost: b.host, Remote: pool, Logger: b.Logger(),
		Hooks: hookcaller.New(hookcaller.Config{ToolHost: b.host, Log: b.Log, Remote: pool}),
	})
	return b
}

// state is that of a run whose agent called work_complete in turn 2 of 9.
func (b *bed) state() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_REFLECTING, TurnCount: 2, MaxTurns: 9,
		Turn: &harnessv1.TurnState{Number: 2}, Workflow: workflow.Default(), Config: runstate.Resolve(nil, 0),
		Workspace: b.workspace, FirstSequence: 1, RunningSince: timestamppb.Now(),
	}
}

// agree gives a run a contract with one output.
func agree(s *harnessv1.Snapshot, predicate *harnessv1.Predicate) *harnessv1.Snapshot {
	return agreeAll(s, map[string]*harnessv1.Predicate{"out": predicate})
}

// agreeAll gives a run a contract with outputs by their ids.
func agreeAll(s *harnessv1.Snapshot, outputs map[string]*harnessv1.Predicate) *harnessv1.Snapshot {
	task := &harnessv1.TaskContract{Goal: "goal"}
	for id, predicate := range outputs {
		task.RequiredOutputs = append(task.RequiredOutputs, &harnessv1.RequiredOutput{Id: id, Description: "Output " + id, Predicate: predicate})
	}
	s.TaskContract = contract.Resolve(task)
	s.CoverageLedger = contract.NewLedger(s.GetTaskContract())
	return s
}

func step(s *harnessv1.Snapshot) *harnessv1.Step {
	return &harnessv1.Step{From: "turn", To: stopdecision.Name, Snapshot: s, Message: &harnessv1.Step_TurnComplete{
		TurnComplete: &harnessv1.TurnComplete{TurnNumber: 2, AgentDone: true, CalledWorkComplete: true},
	}}
}

// observed returns the observation under a key.
func observed(step *harnessv1.Step, key string) *harnessv1.Observation {
	for _, o := range step.GetObserved() {
		if o.GetKey() == key {
			return o
		}
	}
	return nil
}

// check returns the coverage of an output that was observed.
func check(t *testing.T, step *harnessv1.Step, id string) *harnessv1.RequirementCoverage {
	t.Helper()
	o := observed(step, stopdecision.KeyCheck+id)
	if o == nil || o.GetCheck() == nil {
		t.Fatalf("no check of %s was observed: %v", id, step.GetObserved())
	}
	return o.GetCheck()
}

// isStopped fails the test unless a step goes back to repair because the run is to
// stop.
func isStopped(t *testing.T, got *harnessv1.Step) {
	t.Helper()
	if got.GetTo() != "repair" || !observed(got, stopdecision.KeyStop).GetStopAsked() {
		t.Errorf("committed %v", got)
	}
}

// gate makes a named pipe in the workspace. passed returns when a command has written
// to it.
func (b *bed) gate() (passed func()) {
	b.Helper()
	path := filepath.Join(b.workspace, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() {
		b.Helper()
		if _, err := os.ReadFile(path); err != nil {
			b.Fatal(err)
		}
	}
}

func commandSucceeds(line string) *harnessv1.Predicate {
	return &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS, Command: line}
}

func containsText(in, pattern string) *harnessv1.Predicate {
	return &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT, In: in, Pattern: pattern}
}

func custom(cel string) *harnessv1.Predicate {
	return &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CUSTOM, Cel: cel}
}

func count(kind string, least uint32, cited bool) *harnessv1.Predicate {
	return &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind, Min: proto.Uint32(least), Cited: cited}
}

// TestStopDecisionChecksEveryKindOfOutput: each output is observed under its own key,
// texts in blobs included, and the run ends when all are met.
func TestStopDecisionChecksEveryKindOfOutput(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if err := os.WriteFile(filepath.Join(b.workspace, "made.txt"), []byte("made by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := serveCheck(t, func(r *harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error) {
		var state map[string]any
		if err := json.Unmarshal([]byte(r.GetState()), &state); err != nil {
			return nil, err
		}
		if r.GetNamespace() != b.Run.Namespace || r.GetRunId() != b.Run.ID || r.GetGoal() != "goal" || r.GetWorkspace() != b.workspace ||
			r.GetOutput().GetId() != "service" || r.GetIdempotencyKey() != "2/check:service" || !strings.HasPrefix(r.GetResponse(), "All tests pass.") ||
			state["max_turns"] != 9.0 {
			return nil, status.Errorf(codes.InvalidArgument, "unexpected request %v", r)
		}
		return &harnessv1.RequirementCoverage{Status: met}, nil
	})
	long := "All tests pass." + strings.Repeat(" Really.", 2000)
	s := b.state()
	s.Answer = b.Blob(long)
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{
		{Id: "w1", Title: "One", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE, Artifact: b.Blob("the report")},
		{Id: "w2", Title: "Two", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE},
	}, Artifacts: []*harnessv1.Artifact{
		{Id: "a1", Kind: "finding", Content: b.Blob(`{"n": 1}`), Citations: []*harnessv1.Citation{{Source: "s1", Quote: "n"}}},
		{Id: "w1", Kind: "finding", Content: content.Inline("saved under the id of a work item with an artifact")},
		{Id: "w2", Kind: "finding", Content: content.Inline("saved under the id of a work item without one")},
	}}
	s.MessageCount = 2
	want := map[string]harnessv1.RequirementStatus{
		"command": met, "fails": unmet, "file": met, "absent": unmet, "text": met, "response": met, "tail": met, "transcript": met, "artifact": met,
		"no-artifact": unmet, "cel": met, "service": met,
		"saved": met, "saved-document": met, "items-first": unmet, "no-item-artifact": met, "findings": met, "cited": met, "more-cited": unmet, "letters": unmet,
	}
	agreeAll(s, map[string]*harnessv1.Predicate{
		"command":          commandSucceeds("test -f made.txt"),
		"fails":            commandSucceeds("echo broken >&2; exit 3"),
		"file":             {Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "made.txt"},
		"absent":           {Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "absent.txt"},
		"text":             containsText("file:made.txt", "by hand"),
		"response":         containsText("response", "all tests pass"),
		"tail":             custom(`response.endsWith("Really.")`),
		"transcript":       containsText("transcript", "in the first record"),
		"artifact":         containsText("artifact:w1", "the report"),
		"no-artifact":      containsText("artifact:w9", "."),
		"saved":            containsText("artifact:a1", `"n"`),
		"saved-document":   {Type: harnessv1.PredicateType_PREDICATE_TYPE_JSON_SCHEMA_VALID, In: "artifact:a1", Schema: `{"required":["n"]}`},
		"items-first":      containsText("artifact:w1", "saved under"),
		"no-item-artifact": containsText("artifact:w2", "saved under"),
		"findings":         count("finding", 3, false),
		"cited":            count("finding", 1, true),
		"more-cited":       count("finding", 2, true),
		"letters":          count("letter", 1, false),
		"cel":              custom(`turn == 2 && files_changed == 0 && artifacts["w1"] == "the report"`),
		"service":          {Type: harnessv1.PredicateType_PREDICATE_TYPE_CUSTOM, Grpc: pool},
	})
	b.PutJournal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 2}}},
		&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_ASSISTANT, Content: b.Blob("This is in the first record.")})
	b.Put(step(s), &harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("And this is not.")})
	b.Start(b.server.Run)

	got := b.NextStep()
	for id, status := range want {
		if c := check(t, got, id); c.GetStatus() != status {
			t.Errorf("%s: %v, want %s", id, c, status)
		}
	}
	if e := check(t, got, "cited").GetEvidence(); len(e) != 1 || e[0].GetText() != "1 of finding: a1" ||
		e[0].GetDigest() != content.Digest([]byte("a1 "+content.Digest([]byte(`{"n": 1}`))+"\n")) {
		t.Errorf("evidence of an artifact in a blob: %v", e)
	}
	if got.GetTo() != "repair" || !strings.Contains(check(t, got, "fails").GetWhy(), "broken") {
		t.Errorf("committed %v", got)
	}
}

// checkService is a CheckService that is a function.
type checkService struct {
	harnessv1.UnimplementedCheckServiceServer
	check func(*harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error)
}

func (s checkService) Check(_ context.Context, r *harnessv1.CheckRequest) (*harnessv1.CheckResponse, error) {
	c, err := s.check(r)
	return &harnessv1.CheckResponse{Coverage: c}, err
}

func serveCheck(t *testing.T, f func(*harnessv1.CheckRequest) (*harnessv1.RequirementCoverage, error)) string {
	return steptest.Serve(t, func(r grpc.ServiceRegistrar) { harnessv1.RegisterCheckServiceServer(r, checkService{check: f}) })
}

// TestStopDecisionEndsTheRun_WhenAllOutputsAreMet without a workspace, whose state no
// tool host reads.
func TestStopDecisionEndsTheRun_WhenAllOutputsAreMet(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	s := b.state()
	s.Workspace = ""
	b.Put(step(agree(s, custom("called_work_complete && files_changed == 0"))))
	b.Start(b.server.Run)
	if got := b.NextStep(); got.GetTo() != runlog.End || got.GetResult().GetReason().GetKind() != "agent_done" {
		t.Errorf("committed %v", got)
	}
}

// TestStopDecisionCancelsTheCheck_WhenTheRunIsInterrupted: the command is dead when the
// decision is committed.
func TestStopDecisionCancelsTheCheck_WhenTheRunIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBedWithoutHeartbeats(t)
	passed := b.gate()
	b.Put(step(agree(b.state(), commandSucceeds("echo > gate; exec sleep 3600"))))
	b.Start(b.server.Run)
	passed()
	b.Interrupt()
	isStopped(t, b.NextStep())
	b.wasKilled("1/check:out/1", "echo > gate; exec sleep 3600")
}

// wasKilled fails the test unless the check under a key was cancelled. The request
// joins a check that is still running.
func (b *bed) wasKilled(key, command string) {
	b.Helper()
	r, err := b.host.CheckCommand(b.Context(), &harnessv1.CheckCommandRequest{
		Namespace: b.Run.Namespace, RunId: b.Run.ID, FirstSequence: 1, Workspace: b.workspace, Key: key, Command: command,
	})
	if err != nil || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		b.Errorf("the check under %s: %v, %v", key, r, err)
	}
}

// TestStopDecisionReadsTheInbox_WhenAPokeIsLost: the heartbeat reads it too.
func TestStopDecisionReadsTheInbox_WhenAPokeIsLost(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	passed := b.gate()
	b.Put(step(agree(b.state(), commandSucceeds("echo > gate; exec sleep 3600"))))
	b.Start(b.server.Run)
	passed()
	if _, _, err := b.Log.AppendInbox(b.Context(), b.Run, &harnessv1.InboxItem{Id: "c", Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}, 0); err != nil {
		t.Fatal(err)
	}
	isStopped(t, b.NextStep())
}

func TestStopDecisionCancelsTheCheck_WhenTheWallClockBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	s := b.state()
	s.Config.Budgets = &harnessv1.Budgets{WallClock: durationpb.New(500 * time.Millisecond)}
	b.Put(step(agree(s, commandSucceeds("exec sleep 3600"))))
	b.Start(b.server.Run)
	isStopped(t, b.NextStep())
}

// TestStopDecisionWaitsForItsToolHost: one that cannot be reached says nothing about
// the work.
func TestStopDecisionWaitsForItsToolHost(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 8)
	b := newBed(t, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*harnessv1.CheckCommandRequest); ok {
			calls <- r.GetKey()
			if len(calls) == 1 {
				return nil, status.Error(codes.Unavailable, "starting")
			}
		}
		return next(ctx, req)
	})
	b.Put(step(agree(b.state(), commandSucceeds("true"))))
	b.Start(b.server.Run)
	if got := b.NextStep(); check(t, got, "out").GetStatus() != met {
		t.Errorf("committed %v", got)
	}
	if first, second := <-calls, <-calls; first != "1/check:out/1" || second != first {
		t.Errorf("asked under %s and %s", first, second)
	}
}

// TestStopDecisionRunsACommandAgain_WhenItsToolHostDied: under a new key each time, and
// three times at most.
func TestStopDecisionRunsACommandAgain_WhenItsToolHostDied(t *testing.T) {
	for name, c := range map[string]struct {
		died int
		keys int
		want harnessv1.RequirementStatus
	}{
		"once":  {1, 2, met},
		"twice": {2, 3, met},
		"three": {3, 3, unmet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := make(chan string, 8)
			b := newBed(t, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				if r, ok := req.(*harnessv1.CheckCommandRequest); ok {
					keys <- r.GetKey()
					if len(keys) <= c.died {
						return &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, nil
					}
				}
				return next(ctx, req)
			})
			b.Put(step(agree(b.state(), commandSucceeds("true"))))
			b.Start(b.server.Run)
			if got := check(t, b.NextStep(), "out"); got.GetStatus() != c.want || got.GetUnknown() != (c.want == unmet) {
				t.Errorf("observed %v, want %s", got, c.want)
			}
			if len(keys) != c.keys {
				t.Errorf("the command was run %d times, want %d", len(keys), c.keys)
			}
			for n := 1; len(keys) > 0; n++ {
				if key := <-keys; key != "1/check:out/"+string(rune('0'+n)) {
					t.Errorf("try %d has the key %s", n, key)
				}
			}
		})
	}
}

// TestStopDecisionJoinsTheCheck_WhenItTakesAStepOver: it sends the check under the same
// key, so the command runs once.
func TestStopDecisionJoinsTheCheck_WhenItTakesAStepOver(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	passed := b.gate()
	b.Put(step(agree(b.state(), commandSucceeds("echo x >> runs; echo > gate; cat gate"))))
	stop := b.Start(b.server.Run)
	passed()
	stop()
	b.Start(b.server.Run)
	if err := os.WriteFile(filepath.Join(b.workspace, "gate"), []byte("go on"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.NextStep(); check(t, got, "out").GetStatus() != met {
		t.Errorf("committed %v", got)
	}
	if runs, err := os.ReadFile(filepath.Join(b.workspace, "runs")); err != nil || string(runs) != "x\n" {
		t.Errorf("the command ran %q, %v", runs, err)
	}
}

// hookService is a HookService that is a function.
type hookService struct {
	harnessv1.UnimplementedHookServiceServer
	handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error)
}

func (s hookService) HandleHook(ctx context.Context, r *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	v, err := s.handle(ctx, r.GetHook())
	return &harnessv1.HandleHookResponse{Verdict: v}, err
}

// subscribe gives a run a hook at a HookService.
func subscribe(t *testing.T, s *harnessv1.Snapshot, topic harnessv1.HookTopic, f func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error)) *harnessv1.Snapshot {
	t.Helper()
	s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
		Id: "h", Topic: topic, Timeout: durationpb.New(time.Minute),
		Grpc: steptest.Serve(t, func(r grpc.ServiceRegistrar) { harnessv1.RegisterHookServiceServer(r, hookService{handle: f}) }),
	}}}
	return s
}

// TestStopDecisionCallsHooks: a subscriber of agent_stop objects, and its verdict is
// observed under the key of its call.
func TestStopDecisionCallsHooks(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	requests := make(chan *harnessv1.HookRequest, 4)
	b.Put(step(subscribe(t, b.state(), harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, func(_ context.Context, r *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
		requests <- r
		return &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: "not reviewed"}, nil
	})))
	b.Start(b.server.Run)
	rec := b.Next()
	r := <-requests
	if r.GetRunId() != b.Run.ID || r.GetTurnNumber() != 2 || r.GetHookId() != "h" || len(requests) != 0 {
		t.Errorf("called with %v and %d times more", r, len(requests))
	}
	got := rec.GetStep()
	if o := observed(got, r.GetIdempotencyKey()); got.GetTo() != "repair" || o.GetHook().GetVerdict().GetReason() != "not reviewed" {
		t.Errorf("committed %v", got)
	}
	if m := rec.GetAppended(); len(m) != 1 || !strings.Contains(m[0].GetContent().GetInline(), "not reviewed") {
		t.Errorf("appended %v", m)
	}
}

// TestStopDecisionCancelsTheHook_WhenTheRunIsInterrupted: nothing that the subscriber
// says counts any more.
func TestStopDecisionCancelsTheHook_WhenTheRunIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBedWithoutHeartbeats(t)
	started, cancelled := make(chan struct{}), make(chan struct{})
	b.Put(step(subscribe(t, b.state(), harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, func(ctx context.Context, _ *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
		close(started)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})))
	b.Start(b.server.Run)
	<-started
	b.Interrupt()
	got := b.NextStep()
	isStopped(t, got)
	if len(got.GetObserved()) != 1 {
		t.Errorf("observed %v", got.GetObserved())
	}
	<-cancelled
}

// TestStopDecisionFinishesTheNotices_WhenTheRunIsInterrupted: the run has ended when its
// observers are called, and an interrupt does not cancel that.
func TestStopDecisionFinishesTheNotices_WhenTheRunIsInterrupted(t *testing.T) {
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, harnessv1.HookTopic_HOOK_TOPIC_SESSION_END} {
		t.Run(topic.String(), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			var called bool
			b.Put(step(subscribe(t, b.state(), topic, func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
				b.Interrupt()
				called = true
				return &harnessv1.HookVerdict{}, nil
			})))
			b.Start(b.server.Run)
			got := b.NextStep()
			if got.GetTo() != runlog.End || len(got.GetObserved()) != 1 || got.GetObserved()[0].GetHook().GetVerdict() == nil || !called {
				t.Errorf("committed %v", got)
			}
		})
	}
}

// TestStopDecisionLimitsWhatHooksSay: the record of the decision holds all of it.
func TestStopDecisionLimitsWhatHooksSay(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	s := b.state()
	address := steptest.Serve(t, func(r grpc.ServiceRegistrar) {
		harnessv1.RegisterHookServiceServer(r, hookService{handle: func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
			return &harnessv1.HookVerdict{Context: strings.Repeat("x", 8<<10)}, nil
		}})
	})
	s.Definition = &harnessv1.Definition{}
	for range 14 {
		s.Definition.Hooks = append(s.Definition.Hooks, &harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Grpc: address})
	}
	b.Put(step(s))
	b.Start(b.server.Run)
	failed := 0
	got := b.NextStep()
	for _, o := range got.GetObserved() {
		if o.GetHook().GetError() != "" {
			failed++
		}
	}
	if len(got.GetObserved()) != 14 || failed < 2 || failed > 3 {
		t.Errorf("%d of %d hooks failed", failed, len(got.GetObserved()))
	}
}

// TestDefinitionsAreReadFromBlobs: the definition of a run may be stored apart from its
// snapshot.
func TestDefinitionsAreReadFromBlobs(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	s := agree(b.state(), containsText("response", strings.Repeat("absent", 200)))
	err := runstate.Pack(s, func(data []byte) (*harnessv1.BlobRef, error) { return b.Log.PutBlob(b.Context(), b.Run, data) })
	if err != nil || s.GetTaskContract().GetRequiredOutputs() != nil {
		t.Fatalf("the contract is not stored apart: %v", err)
	}
	b.Put(step(s))
	b.Start(b.server.Run)
	if got := b.NextStep(); check(t, got, "out").GetStatus() != unmet {
		t.Errorf("committed %v", got)
	}
}

// TestDecideCommitsNothing calls the decision over gRPC: it returns what it needs, and
// then the outcome.
func TestDecideCommitsNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	client := harnessv1.NewStopDecisionServiceClient(steptest.Dial(t, steptest.Serve(t, func(r grpc.ServiceRegistrar) { b.server.Register(r) })))
	s := agree(b.state(), commandSucceeds("touch ran"))
	b.Put(&harnessv1.Step{From: "turn", To: "turn", Snapshot: proto.CloneOf(s), Message: step(s).GetMessage()})
	input := &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Now: timestamppb.Now(), Step: step(s)}
	r, err := client.Decide(b.Context(), &harnessv1.DecideRequest{Input: input})
	if keys := r.GetOutput().GetNeeds().GetKeys(); err != nil || len(keys) != 1 || keys[0] != "check:out" {
		t.Fatalf("got %v, %v; want the need of check:out", r, err)
	}
	input.Observed = []*harnessv1.Observation{{Key: "check:out", Value: &harnessv1.Observation_Check{Check: &harnessv1.RequirementCoverage{RequirementId: "out", Status: met, Confidence: 1}}}}
	r, err = client.Decide(b.Context(), &harnessv1.DecideRequest{Input: input})
	if err != nil || r.GetOutput().GetOutcome().GetStep().GetTo() != runlog.End {
		t.Fatalf("got %v, %v; want the end of the run", r, err)
	}
	_, err = client.Decide(b.Context(), &harnessv1.DecideRequest{Input: &harnessv1.StepInput{}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "input") {
		t.Errorf("an input without a step: %v", err)
	}
	posted := &harnessv1.Snapshot{
		Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(9)}}, MaxTurns: 9, TurnCount: 1, Phase: harnessv1.Phase_PHASE_REFLECTING,
	}
	input = &harnessv1.StepInput{Now: timestamppb.Now(), Step: &harnessv1.Step{
		Snapshot: posted, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true}},
	}}
	r, err = client.Decide(b.Context(), &harnessv1.DecideRequest{Input: input})
	if kind := r.GetOutput().GetOutcome().GetStep().GetSnapshot().GetRejectedKind(); err != nil || kind != "work_complete_not_called" {
		t.Errorf("a state without require_work_complete was rejected for %q, %v; want its default, true", kind, err)
	}
	posted.Phase = harnessv1.Phase_PHASE_DONE
	_, err = client.Decide(b.Context(), &harnessv1.DecideRequest{Input: input})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "input.step.snapshot.phase") {
		t.Errorf("a state whose run is over: %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "ran")); !os.IsNotExist(err) {
		t.Errorf("Decide ran the check: %v", err)
	}
	b.IsNewest()
}
