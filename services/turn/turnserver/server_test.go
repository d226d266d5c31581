package turnserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const wholeTurn = "turn_started model_responded tools_started tool_finished tool_finished"

// TestTurnRunsItsCalls: the model gets the conversation and the tools, its text is
// published while it writes, and its calls run at the same time.
func TestTurnRunsItsCalls(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	both := make(chan struct{})
	b := newBedWith(t, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, "/ExecuteTool") {
			if arrived.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return handler(ctx, req)
	}, nil, calls(call("a", "read_file", "path", "a.txt"), call("b", "read_file", "path", "b.txt")))
	b.write("a.txt", "forty")
	b.write("b.txt", "two")
	var mu sync.Mutex
	text := ""
	stop, err := b.Log.SubscribeDeltas(b.Run, func(d *harnessv1.Delta) {
		mu.Lock()
		defer mu.Unlock()
		if d.GetTurnNumber() == 2 && d.GetAttempt() == 1 && d.GetTry() == 1 && d.GetOffset() == uint64(len(text)) {
			text += d.GetText()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	b.run(b.state())
	journal, outcome := b.records()
	b.is(journal, wholeTurn)
	results := b.results(journal...)
	if !strings.Contains(results["a"], "forty") || !strings.Contains(results["b"], "two") {
		t.Errorf("results %v", results)
	}
	request := b.request(0)
	if request.Model != "gpt" || len(request.Messages) != 1 || request.Messages[0].Content != goal || len(request.Tools) < 5 {
		t.Errorf("the model is sent %+v", request)
	}
	s := outcome.GetStep().GetSnapshot()
	if outcome.GetStep().GetTo() != "stopdecision" || s.GetTurnCount() != 2 || s.GetMessageCount() != 4 || s.GetSpent().GetUsage().GetCostMicroUsd() != 7 {
		t.Errorf("the outcome is %v", outcome.GetStep())
	}
	if r := journal[1].GetJournal().GetModelResponded(); r.GetPreparation() == nil || r.GetLatency().AsDuration() <= 0 {
		t.Errorf("the response took %v after %v", r.GetLatency(), r.GetPreparation())
	}
	b.within("all text is published", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return text == "Looking."
	})
}

// TestRequestHasTexts: the model is sent the texts of blobs, and long results are cut.
func TestRequestHasTexts(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.state()
	s.MessageCount, s.Config.Tools.ShownTokens = 3, proto.Uint32(100)
	long := b.Blob(strings.Repeat("a line of the file\n", 2000))
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
		&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: b.Blob(goal)},
		&harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "read_file", Arguments: b.Blob(`{"path":"a.txt"}`)}}},
		&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c", ToolName: "read_file", Content: long},
	)
	b.start()
	b.records()
	m := b.request(0).Messages
	if m[0].Content != goal || m[1].ToolCalls[0].Arguments != `{"path":"a.txt"}` {
		t.Errorf("the model is sent %+v", m)
	}
	if len(m[2].Content) > 1000 || !strings.Contains(m[2].Content, "bytes left out here") {
		t.Errorf("the result has %d bytes", len(m[2].Content))
	}
}

// TestFailedTriesAreRepeated: a model is tried again after a wait, then the fallback
// models in order; each failed try is stored.
func TestFailedTriesAreRepeated(t *testing.T) {
	t.Parallel()
	b := newBed(t,
		modeltest.Reply{Status: 503, ErrorMessage: "busy"},
		modeltest.Reply{Status: 400, ErrorMessage: "no"},
		calls(done))
	s := b.state()
	s.FallbackModels = []string{"nowhere:x", "test:second"}
	const wait = 300 * time.Millisecond
	s.Config.Model.BackoffInitial, s.Config.Model.BackoffMax = durationpb.New(2*wait), durationpb.New(2*wait)
	began := time.Now()
	b.run(s)
	journal, outcome := b.records()
	b.is(journal, "turn_started model_retried model_retried model_retried model_responded")
	var tries []string
	for _, rec := range journal[1:4] {
		r := rec.GetJournal().GetModelRetried()
		tries = append(tries, fmt.Sprintf("%d %s %t", r.GetTry(), r.GetModel(), r.GetLast()))
	}
	if got, want := strings.Join(tries, ", "), "1 test:gpt false, 2 test:gpt true, 3 nowhere:x true"; got != want {
		t.Errorf("tries %s, want %s", got, want)
	}
	if waited := time.Since(began); waited < wait {
		t.Errorf("the second try followed after %v, want %v at least", waited, wait)
	}
	if last := b.request(2).Model; last != "second" || !outcome.GetStep().GetTurnComplete().GetAgentDone() {
		t.Errorf("the last model tried is %s", last)
	}
}

// TestAWebPageIsAFailedTry: a proxy sends one as a success while the service is away.
func TestAWebPageIsAFailedTry(t *testing.T) {
	t.Parallel()
	b := newBed(t, modeltest.Reply{Body: "<html><title>Maintenance</title></html>", Quirks: modeltest.Quirks{ContentType: "text/html"}}, calls(done))
	s := b.state()
	s.Config.Model.BackoffInitial = durationpb.New(time.Millisecond)
	b.run(s)
	journal, outcome := b.records()
	b.is(journal, "turn_started model_retried model_responded")
	if why := journal[1].GetJournal().GetModelRetried().GetError(); !strings.Contains(why, "answered with a web page instead of a response") {
		t.Errorf("the try failed because of %q", why)
	}
	if !outcome.GetStep().GetTurnComplete().GetAgentDone() {
		t.Errorf("the outcome is %v", outcome.GetStep())
	}
}

// TestArtifactsAreStoredAsBlobs: a large artifact is not part of the record.
func TestArtifactsAreStoredAsBlobs(t *testing.T) {
	t.Parallel()
	product := strings.Repeat("1 + 1 = 2\n", 100)
	b := newBed(t, calls(call("i", "work_item_add", "title", "Sums"), call("a", "work_item_set_artifact", "id", "w1", "content", product)))
	s := b.state()
	s.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
	b.run(s)
	journal, _ := b.records()
	items := journal[1].GetJournal().GetModelResponded().GetWorkItems()
	if len(items) != 1 || items[0].GetArtifact().GetBlob() == nil || b.text(items[0].GetArtifact()) != product {
		t.Errorf("the items are %v", items)
	}
}

// TestSubscribersSeeCalls: before_tool_call denies a call by arguments that are stored
// as a blob, after_tool_call sees them too, and before_step and after_step are fired.
func TestSubscribersSeeCalls(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20_000)
	b := newBed(t, calls(call("no", "write_file", "path", "no.txt", "content", long), call("yes", "write_file", "path", "yes.txt", "content", long)))
	s := hooks(b.state(),
		&harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "Be careful."},
		&harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Cel: `args.path == "no.txt" && size(args.content) == 20000`,
			Action: harnessv1.HookAction_HOOK_ACTION_DENY, Reason: "not that"},
		&harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: `size(args.content) == 20000`,
			Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "Written."},
		&harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "After."},
	)
	b.run(s)
	journal, outcome := b.records()
	b.is(journal, "turn_started turn_admitted model_responded calls_judged tools_started tool_finished")
	told := func(rec *harnessv1.Record) string {
		var texts []string
		for _, m := range rec.GetAppended() {
			if m.GetRole() == harnessv1.Role_ROLE_USER {
				texts = append(texts, content.Text(m.GetContent()))
			}
		}
		return strings.Join(texts, " ")
	}
	for rec, want := range map[*harnessv1.Record]string{journal[1]: "Be careful.", journal[5]: "Written.", outcome: "After."} {
		if !strings.Contains(told(rec), want) {
			t.Errorf("the model reads %q, want %q", told(rec), want)
		}
	}
	if got := b.results(journal...); !strings.Contains(got["no"], "not that") {
		t.Errorf("results %v", got)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "no.txt")); err == nil {
		t.Error("a denied call ran")
	}
}

// TestChangedInstructionsAreShown: the workspace is read before a turn.
func TestChangedInstructionsAreShown(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	b.write("AGENTS.md", "Count twice.")
	s := b.state()
	s.TurnCount = 4
	b.run(s)
	journal, _ := b.records()
	if texts := fmt.Sprint(journal[0].GetAppended()); !strings.Contains(texts, "Count twice.") {
		t.Errorf("the model reads %s", texts)
	}
}

// TestInterruptKillsCalls: when the outcome says interrupted, no process of a call
// lives, also none that it has started.
func TestInterruptKillsCalls(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("c", "run_command", "command", "sleep 600 & echo begun > gate; wait"), call("d", "run_command", "command", "touch second")))
	passed := b.gate("gate")
	b.run(b.state())
	passed()
	if len(b.processes()) == 0 {
		t.Fatal("no process of the call is found")
	}
	b.Interrupt()
	journal, outcome := b.records()
	if alive := b.processes(); len(alive) > 0 {
		t.Errorf("%v live after the turn was interrupted", alive)
	}
	b.is(journal, wholeTurn)
	for _, rec := range journal[3:] {
		if got := rec.GetJournal().GetToolFinished().GetOutcome(); got != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			t.Errorf("the call ended as %s", got)
		}
	}
	if !outcome.GetStep().GetTurnComplete().GetInterrupted() {
		t.Errorf("the outcome is %v", outcome)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "second")); err == nil {
		t.Error("a call ran after the interrupt")
	}
}

// TestInterruptEndsRequest: an interrupt ends the request to the model, and the wait
// between two tries.
func TestInterruptEndsRequest(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]modeltest.Reply{
		"request": {Fault: modeltest.FaultHang},
		"wait":    {Status: 429, Header: map[string]string{"Retry-After": "120"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, reply)
			b.run(b.state())
			if b.Next(); name == "wait" {
				b.Next()
			} else {
				<-b.model.Arrived()
			}
			b.Interrupt()
			if step := b.NextStep(); !step.GetTurnComplete().GetInterrupted() || step.GetTurnComplete().GetError() != nil {
				t.Errorf("the outcome is %v", step)
			}
			if n := len(b.model.Requests()); n > 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestInboxIsReadBeforeCalls: an interrupt of which no message came is seen before a
// call is sent.
func TestInboxIsReadBeforeCalls(t *testing.T) {
	t.Parallel()
	var later atomic.Bool
	on := withoutHeartbeats(t)
	b := newBedOn(t, on, nil, func(cfg *turnserver.Config) {
		cfg.Now = func() time.Time {
			if later.Load() {
				return time.Now().Add(24 * time.Hour)
			}
			return time.Now()
		}
	}, modeltest.Reply{Fault: modeltest.FaultSilence, Text: "Looking."}, calls(call("c", "run_command", "command", "touch ran")))
	b.run(b.state())
	<-b.model.Arrived()
	item := &harnessv1.InboxItem{Id: "stop", Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}}
	if _, _, err := b.Log.AppendInbox(b.Context(), b.Run, item, 0); err != nil {
		t.Fatal(err)
	}
	later.Store(true)
	b.model.Release()
	_, outcome := b.records()
	if !outcome.GetStep().GetTurnComplete().GetInterrupted() {
		t.Errorf("the outcome is %v", outcome.GetStep().GetTurnComplete())
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "ran")); err == nil {
		t.Error("a call was sent although an interrupt was in the inbox")
	}
}

// takeover stores the journal of a worker that died after it had started a command,
// under the ledger of the host.
func (b *bed) takeover(ledger string, id, command string) {
	b.Helper()
	arguments := content.Inline(fmt.Sprintf(`{"command":%q}`, command))
	b.put(b.state())
	for _, rec := range []*harnessv1.Record{
		{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 2, Attempt: 1}}}}},
		{
			Appended: []*harnessv1.Message{{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 2, ToolCalls: []*harnessv1.ToolCall{{Id: id, Name: "run_command", Arguments: arguments}}}},
			Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{
				FinishReason: "tool_calls", Usage: &harnessv1.Usage{}, Calls: []*harnessv1.PreparedCall{{
					CallId: id, Tool: "run_command", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Offered: true,
				}},
			}}}},
		},
		{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{ToolsStarted: &harnessv1.ToolsStarted{CallIds: []string{id}, LedgerId: ledger}}}}},
	} {
		b.PutJournal(rec.GetJournal(), rec.GetAppended()...)
	}
}

// ledger returns the id of the host's ledger.
func (b *bed) ledger() string {
	b.Helper()
	r, err := b.host.DescribeHost(b.Context(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		b.Fatal(err)
	}
	return r.GetLedgerId()
}

// execute runs a command on the host, as a former worker did.
func (b *bed) execute(id, command string) {
	b.Helper()
	_, err := b.host.ExecuteTool(b.Context(), &harnessv1.ExecuteToolRequest{
		Namespace: b.Run.Namespace, RunId: b.Run.ID, CallId: id, Tool: "run_command", Arguments: fmt.Sprintf(`{"command":%q}`, command),
		Workspace: b.workspace, LedgerId: b.ledger(), FirstSequence: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
}

// TestTakeoverFetchesStoredResult: a call that had ended on the host keeps its result,
// whether the turn continues or is interrupted. No request is sent.
func TestTakeoverFetchesStoredResult(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint(stopped), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			const command = "echo once >> count; cat count"
			b.execute("c", command)
			b.takeover(b.ledger(), "c", command)
			if stopped {
				b.Interrupt()
			}
			b.start()
			journal, outcome := b.records()
			b.is(journal, "turn_started tool_finished")
			if journal[0].GetJournal().GetTurnStarted().GetAttempt() != 2 {
				t.Errorf("claimed as %v", journal[0])
			}
			if got := b.results(journal...)["c"]; strings.Count(got, "once") != 1 {
				t.Errorf("the result is %q", got)
			}
			if outcome.GetStep().GetTurnComplete().GetInterrupted() != stopped || len(b.model.Requests()) > 0 {
				t.Errorf("the outcome is %v", outcome.GetStep())
			}
		})
	}
}

// TestCallMovesToNewHost: a call that cannot have begun, because the ledger of the host
// is new, is started on the new ledger.
func TestCallMovesToNewHost(t *testing.T) {
	t.Parallel()
	host := &newHost{}
	b := newBedWith(t, host.intercept, nil, calls(call("c", "run_command", "command", "echo once >> count; cat count")))
	b.run(b.state())
	journal, _ := b.records()
	b.is(journal, "turn_started model_responded tools_started tools_started tool_finished")
	first, second := journal[2].GetJournal().GetToolsStarted().GetLedgerId(), journal[3].GetJournal().GetToolsStarted().GetLedgerId()
	if first != "former" || second != b.ledger() || strings.Count(b.results(journal...)["c"], "once") != 1 {
		t.Errorf("started on %s and %s: %v", first, second, b.results(journal...))
	}
}

// TestHostThatDoesNotKill: when the host of an interrupted call does not answer, the
// call is unknown if another host answers; else the turn fails and is tried again.
func TestHostThatDoesNotKill(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{true, false} {
		t.Run(fmt.Sprint(replaced), func(t *testing.T) {
			t.Parallel()
			host := &newHost{refuse: func(method string) error {
				if method == "CancelTools" {
					return status.Error(codes.Unavailable, "away")
				}
				return nil
			}}
			b := newBedWith(t, host.intercept, func(cfg *turnserver.Config) { cfg.HostPatience = 2 * time.Second })
			ledger := b.ledger() // "former"
			if !replaced {
				ledger = b.ledger()
			}
			b.takeover(ledger, "c", "true")
			b.Interrupt()
			b.start()
			if !replaced {
				for attempt := uint32(2); attempt <= 3; attempt++ {
					if claim := b.Next().GetJournal().GetTurnStarted(); claim.GetAttempt() != attempt {
						t.Errorf("stored %v, want claim %d", claim, attempt)
					}
				}
				return
			}
			_, outcome := b.records()
			pending := outcome.GetStep().GetSnapshot().GetPendingToolCalls()
			if len(pending) != 1 || pending[0].GetClass() != harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN || host.methods()["CancelTools"] < 2 {
				t.Errorf("pending %v after %v", pending, host.methods())
			}
		})
	}
}

// TestUnreachableHostIsTriedAgain: a call is sent again by its id until the host
// answers, and refused if the host does not accept it.
func TestUnreachableHostIsTriedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	host := &newHost{refuse: func(method string) error {
		switch {
		case method != "ExecuteTool":
			return nil
		case tries.Add(1) == 1:
			return status.Error(codes.Unavailable, "away")
		}
		return status.Error(codes.PermissionDenied, "not for you")
	}}
	b := newBedWith(t, host.intercept, nil, calls(call("c", "run_command", "command", "true")))
	b.run(b.state())
	journal, _ := b.records()
	if got := b.results(journal...)["c"]; got != "The tool host refused the call: not for you" || tries.Load() != 2 {
		t.Errorf("after %d tries the result is %q", tries.Load(), got)
	}
}

// panickingHost is a client of the tool host that panics at its first call.
type panickingHost struct {
	harnessv1.ToolHostServiceClient
	tries atomic.Int32
}

func (h *panickingHost) ExecuteTool(ctx context.Context, req *harnessv1.ExecuteToolRequest, options ...grpc.CallOption) (*harnessv1.ExecuteToolResponse, error) {
	if h.tries.Add(1) == 1 {
		panic("broken client")
	}
	return h.ToolHostServiceClient.ExecuteTool(ctx, req, options...)
}

// TestPanicWhileACallIsSentFailsTheStepOnly: the worker continues, and its next attempt
// at the step gets the result.
func TestPanicWhileACallIsSentFailsTheStepOnly(t *testing.T) {
	t.Parallel()
	host := &panickingHost{}
	b := newBedWith(t, nil, func(cfg *turnserver.Config) {
		host.ToolHostServiceClient = cfg.ToolHost
		cfg.ToolHost = host
	}, calls(call("c", "run_command", "command", "echo sent")))
	b.run(b.state())
	journal, _ := b.records()
	if got := b.results(journal...)["c"]; !strings.Contains(got, "sent") {
		t.Errorf("the result is %q, want the output of the second attempt", got)
	}
	if !strings.Contains(entries(journal), "executor_failed") {
		t.Errorf("journal %s, want the failed attempt in it", entries(journal))
	}
}

// TestStoppedWorkerLeavesTurn: a worker that stops leaves its turn to another one, without an
// outcome.
func TestStoppedWorkerLeavesTurn(t *testing.T) {
	t.Parallel()
	b := newBed(t, modeltest.Reply{Fault: modeltest.FaultHang}, calls(done))
	stop := b.run(b.state())
	b.Next()
	<-b.model.Arrived()
	stop()
	b.IsNewest()
	b.start()
	journal, outcome := b.records()
	b.is(journal, "turn_started model_responded")
	if !outcome.GetStep().GetTurnComplete().GetAgentDone() || journal[0].GetEvents()[0].GetWorkerTakeover().GetAttempt() != 2 {
		t.Errorf("the outcome is %v", outcome)
	}
}

// TestTimeBudgetStopsTurn: the end of the wall-clock budget stops a turn as an
// interrupt does.
func TestTimeBudgetStopsTurn(t *testing.T) {
	t.Parallel()
	b := newBed(t, modeltest.Reply{Fault: modeltest.FaultHang})
	s := b.state()
	s.Config.Budgets = &harnessv1.Budgets{WallClock: durationpb.New(500 * time.Millisecond)}
	b.run(s)
	if _, outcome := b.records(); !outcome.GetStep().GetTurnComplete().GetInterrupted() {
		t.Errorf("the outcome is %v", outcome)
	}
}

// TestUnreadableInputFailsExecution: a conversation, an argument or declared tools that
// cannot be read are errors of the worker, not of the run.
func TestUnreadableInputFailsExecution(t *testing.T) {
	t.Parallel()
	missing := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: strings.Repeat("0", 64), Size: 9}}}
	for name, prepare := range map[string]func(*bed){
		"message": func(b *bed) {
			b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: b.state(), Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
				&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: missing})
		},
		"tools": func(b *bed) {
			s := b.state()
			s.ClientTools = missing
			b.put(s)
		},
		"arguments": func(b *bed) {
			s := b.state()
			s.Turn = &harnessv1.TurnState{Number: 2, Open: true}
			s.PendingToolCalls = []*harnessv1.PendingCall{{
				CallId: "c", Tool: "run_command", Arguments: missing, Class: harnessv1.PendingClass_PENDING_CLASS_APPROVED, TurnNumber: 2,
			}}
			b.put(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			prepare(b)
			b.start()
			for {
				rec := b.Next()
				if rec.GetStep() != nil {
					t.Fatalf("the outcome is %v", rec.GetStep())
				}
				if rec.GetJournal().GetExecutorFailed() != nil {
					return
				}
			}
		})
	}
}

// collect returns the updates of a Turn call.
func collect(t *testing.T, b *bed, request *harnessv1.TurnRequest) (updates []*harnessv1.TurnResponse, err error) {
	t.Helper()
	client := harnessv1.NewTurnServiceClient(b.dial())
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	stream, err := client.Turn(ctx, request)
	if err != nil {
		return nil, err
	}
	for {
		update, err := stream.Recv()
		if err != nil {
			return updates, err
		}
		updates = append(updates, update)
	}
}

// TestTurnServicePerformsTurn: the gRPC form has the effects of a turn and stores
// nothing.
func TestTurnServicePerformsTurn(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("c", "run_command", "command", "echo ran; touch ran")))
	s := b.state()
	input := &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: &harnessv1.Step{To: "turn", Snapshot: s}}
	conversation := []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}}
	updates, _ := collect(t, b, &harnessv1.TurnRequest{Input: input, Conversation: conversation})
	var kinds []string
	for _, u := range updates {
		switch k := u.GetUpdate().(type) {
		case *harnessv1.TurnResponse_Journal:
			kinds = append(kinds, entries([]*harnessv1.Record{{Body: &harnessv1.Record_Journal{Journal: k.Journal}}}))
		case *harnessv1.TurnResponse_Outcome:
			kinds = append(kinds, "outcome")
		case *harnessv1.TurnResponse_Delta:
			if k.Delta.GetToolOutput() == nil { // only of a command that takes long
				kinds = append(kinds, "delta")
			}
		}
	}
	if got := strings.Join(slices.Compact(kinds), " "); got != "turn_started delta model_responded tools_started tool_finished outcome" {
		t.Fatalf("updates %s", got)
	}
	outcome := updates[len(updates)-1].GetOutcome()
	var ids []uint64
	for _, m := range outcome.GetAppended() {
		ids = append(ids, m.GetId())
	}
	if !slices.Equal(ids, []uint64{2, 3}) || outcome.GetStep().GetSnapshot().GetMessageCount() != 3 {
		t.Errorf("the outcome is %v", outcome)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "ran")); err != nil {
		t.Error(err)
	}
	for place, request := range map[string]*harnessv1.TurnRequest{
		"input.step.snapshot": {Input: &harnessv1.StepInput{}},
		"input.run_id":        {Input: &harnessv1.StepInput{Step: &harnessv1.Step{Snapshot: s}, RunId: "a b"}},
	} {
		if _, err := collect(t, b, request); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// TestPrepareShowsRequest: Prepare returns what the model would be sent, guidance
// included, and calls no subscriber.
func TestPrepareShowsRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("AGENTS.md", "Count twice.")
	client := harnessv1.NewTurnServiceClient(b.dial())
	conversation := []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}}
	s := hooks(b.state(), &harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_ABORT})
	s.TurnCount = 4
	open := b.state()
	open.Turn = &harnessv1.TurnState{Open: true}
	waiting := proto.CloneOf(open)
	waiting.Phase = harnessv1.Phase_PHASE_AWAITING_TOOL
	waiting.PendingToolCalls = []*harnessv1.PendingCall{{CallId: "q", Tool: "ask_user", Kind: "question", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}}
	for _, c := range []struct {
		want     int
		snapshot *harnessv1.Snapshot
	}{{2, s}, {1, open}, {1, waiting}} {
		want, snapshot := c.want, c.snapshot
		r, err := client.Prepare(b.Context(), &harnessv1.PrepareRequest{
			Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: snapshot}},
			Conversation: conversation,
		})
		if err != nil {
			t.Fatal(err)
		}
		m := r.GetRequest().GetMessages()
		if len(m) < want || want == 1 && len(m) > 1 || content.Text(m[0].GetContent()) != goal || len(r.GetRequest().GetTools()) < 5 ||
			want == 2 && !strings.Contains(content.Text(m[1].GetContent()), "Count twice.") {
			t.Errorf("the request is %v", r.GetRequest().GetMessages())
		}
	}
	if _, err := client.Prepare(b.Context(), &harnessv1.PrepareRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a snapshot: %v", err)
	}
	if len(b.model.Requests()) > 0 {
		t.Error("a request was sent")
	}
}
