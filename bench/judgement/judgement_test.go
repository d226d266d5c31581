package judgement

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// The scenario.
const (
	openItems = 60
	rules     = 50
	outputs   = 30
	turns     = 200 // a measurement
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// BenchmarkTurn reports the CPU of a turn with everything on and with everything off,
// the difference, and the largest snapshot as it is stored.
func BenchmarkTurn(b *testing.B) {
	for _, stopping := range []bool{false, true} {
		name := "working"
		if stopping {
			name = "stopping" // and the contract is judged
		}
		b.Run(name, func(b *testing.B) {
			on, off := newLoop(b, true), newLoop(b, false)
			var with, without time.Duration
			for range b.N {
				with += on.measure(stopping)
				without += off.measure(false) // with nothing to show it would end
			}
			n := float64(b.N * turns)
			b.ReportMetric(float64(with.Microseconds())/n, "on-µs/turn")
			b.ReportMetric(float64(without.Microseconds())/n, "off-µs/turn")
			b.ReportMetric(float64((with-without).Microseconds())/n, "judgement-µs/turn")
			b.ReportMetric(float64(on.largest), "snapshot-max-B")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// loop is a run that only turns.
type loop struct {
	b       *testing.B
	s       *harnessv1.Snapshot
	made    *agent.Definition
	tools   *tool.Set
	store   map[string][]byte
	parts   runstate.Parts
	turn    uint32
	largest int
	sent    []string // calls that run
}

func newLoop(b *testing.B, on bool) *loop {
	l := &loop{b: b, store: map[string][]byte{}}
	spec := &harnessv1.RunSpec{Goal: content.Inline("the goal"), Agent: &harnessv1.AgentSpec{Model: "openai:m"}, Config: &harnessv1.LoopConfig{
		Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(1_000_000_000)}, Budgets: &harnessv1.Budgets{ToolCalls: proto.Uint32(4_000_000_000)},
		WorkItems: &harnessv1.WorkItemConfig{Enabled: proto.Bool(on)}, Stall: &harnessv1.StallConfig{Enabled: proto.Bool(on)},
		DoomLoop: &harnessv1.DoomLoopConfig{Enabled: proto.Bool(on)}, Guidance: &harnessv1.GuidanceConfig{Enabled: proto.Bool(on), Jit: proto.Bool(on)},
	}}
	if on {
		for i := range rules {
			spec.Agent.Jit = append(spec.Agent.Jit, &harnessv1.JitRule{
				Id:   fmt.Sprintf("rule-%d", i),
				When: fmt.Sprintf("turn > %d && reads < %d || tool_usage[\"run_command\"] > %d", 1_000_000_000+i, i, 1_000_000_000+i),
				Text: "Look again at what the task asks for before you go on with step {{ turn }}.",
			})
		}
		spec.Contract = &harnessv1.TaskContract{Goal: "all of it"}
		for i := range outputs {
			spec.Contract.RequiredOutputs = append(spec.Contract.RequiredOutputs, &harnessv1.RequiredOutput{
				Id: fmt.Sprintf("output-%d", i), Description: fmt.Sprintf("The chapter %d of the report is there", i),
				Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: fmt.Sprintf("report/chapter-%d.md", i)},
			})
		}
	}
	d, task := agent.StoredForm(spec)
	var err error
	if l.made, err = agent.Compile(d, task); err != nil {
		b.Fatal(err)
	}
	l.s = &harnessv1.Snapshot{
		Config: runstate.Resolve(spec.GetConfig(), 0), Workflow: workflow.Default(), Phase: harnessv1.Phase_PHASE_EXECUTING,
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, MaxTurns: 1_000_000_000, Model: "openai:m", Segment: 1,
		Workspace: "/w", Folder: &harnessv1.WorkspaceFolder{Path: "/w", Inode: 1},
		RunningSince: timestamppb.New(noon), Definition: d, TaskContract: task, ProgressTracker: &harnessv1.ProgressTracker{},
		Turn: &harnessv1.TurnState{},
	}
	if on {
		l.s.CoverageLedger = contract.NewLedger(task)
		l.s.WorkItemLedger = &harnessv1.WorkItemLedger{}
		for i := range openItems {
			workitem.AddItem(l.s.GetWorkItemLedger(), fmt.Sprintf(`{"title":"Write chapter %d of the report","notes":"after chapter %d, with its figures"}`, i, i-1))
		}
		for i := range 30 {
			strict, loose := progress.Signature("read_file", fmt.Sprintf(`{"path":"before-%d"}`, i), "d")
			runstate.RecordOutcome(l.s, "read_file", strict, loose, runstate.Fresh)
		}
	}
	object := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	specs := append([]*harnessv1.ToolSpec{{
		Name: "read_file", ParametersSchema: object, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Annotations: &harnessv1.ToolAnnotations{Reads: true, Idempotent: true},
	}}, harnesstool.Specs(harnesstool.Setting{WorkItems: on, Questions: true})...)
	if l.tools, err = tool.NewSet(specs); err != nil {
		b.Fatal(err)
	}
	l.s = l.through(l.s)
	return l
}

// measure takes some turns and returns their CPU time.
func (l *loop) measure(stopping bool) time.Duration {
	began := cpu(l.b)
	for range turns {
		l.take(stopping)
	}
	return cpu(l.b) - began
}

func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// take takes one turn: repair, the turn with a read and a note in the ledger, the
// stop decision.
func (l *loop) take(stopping bool) {
	l.turn++
	l.step(&harnessv1.Step{To: repair.Name, Snapshot: l.s, Message: &harnessv1.Step_RepairTrigger{
		RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE},
	}}, func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		in.Observed = []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{}}}}
		return repair.DecideWith(in, l.made, nil)
	})
	complete := l.carryOut(stopping)
	l.step(&harnessv1.Step{To: stopdecision.Name, Snapshot: l.s, Message: &harnessv1.Step_TurnComplete{TurnComplete: complete}}, func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		out, err := stopdecision.DecideWith(in, l.made)
		for err == nil && out.GetNeeds() != nil {
			for _, key := range out.GetNeeds().GetKeys() {
				in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Check{Check: &harnessv1.RequirementCoverage{
					RequirementId: key[len(stopdecision.KeyCheck):], Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "there is no such file",
				}}})
			}
			out, err = stopdecision.DecideWith(in, l.made)
		}
		return out, err
	})
}

// carryOut is the turn itself.
func (l *loop) carryOut(stopping bool) *harnessv1.TurnComplete {
	response := &model.Response{Usage: &harnessv1.Usage{}, FinishReason: "tool_calls", ToolCalls: []*harnessv1.ToolCall{
		{Id: fmt.Sprintf("c%d", l.turn), Name: "read_file", Arguments: content.Inline(fmt.Sprintf(`{"path":"f%d"}`, l.turn))},
	}}
	if l.s.GetWorkItemLedger() != nil {
		response.ToolCalls = append(response.ToolCalls, &harnessv1.ToolCall{
			Id: fmt.Sprintf("w%d", l.turn), Name: workitem.Update, Arguments: content.Inline(fmt.Sprintf(`{"id":"w7","notes":"turn %d"}`, l.turn)),
		})
	}
	if stopping {
		response.ToolCalls = append(response.ToolCalls, &harnessv1.ToolCall{Id: fmt.Sprintf("d%d", l.turn), Name: harnesstool.WorkComplete, Arguments: content.Inline(`{"summary":"done"}`)})
	}
	state := &turn.State{Snapshot: l.s, Definition: l.made, Offer: &offer.Offer{Set: l.tools}, Ledger: "ledger"}
	p := turn.New(state, noon)
	for {
		action := turn.Next(state, p)
		if end, ok := action.(turn.Return); ok {
			l.commit(end.Outcome)
			return end.Outcome.GetStep().GetTurnComplete()
		}
		if err := p.Observe(state, noon, action, l.perform(action, response)); err != nil {
			l.b.Fatal(err)
		}
	}
}

func (l *loop) perform(action turn.Action, response *model.Response) turn.Event {
	switch a := action.(type) {
	case turn.Inspect:
		return turn.Inspected{}
	case turn.Append:
		l.bytes(&harnessv1.Record{Appended: a.Draft.Appended, Events: a.Draft.Events, Body: &harnessv1.Record_Journal{Journal: a.Draft.Entry}})
		return turn.Appended{}
	case turn.LoadConversation:
		return turn.ConversationLoaded{Conversation: &conversation.Conversation{}}
	case turn.PrepareRequest:
		return turn.RequestPrepared{}
	case turn.AskModel:
		return turn.ModelAnswered{Response: response}
	case turn.ProposeCalls:
		return turn.Proposals{}
	case turn.CheckInbox:
		return turn.InboxChecked{}
	case turn.SendCall:
		l.sent = append(l.sent, a.Call.ID)
		return turn.CallSent{}
	case turn.AwaitCall:
		id := l.sent[0]
		l.sent = l.sent[1:]
		return turn.CallEnded{ID: id, Response: &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: fmt.Sprintf("text %d", l.turn)}}
	}
	l.b.Fatalf("unexpected action %T", action)
	return nil
}

// step decides on a step and commits what came of it.
func (l *loop) step(step *harnessv1.Step, decide func(*harnessv1.StepInput) (*harnessv1.StepOutput, error)) {
	out, err := decide(&harnessv1.StepInput{Namespace: "default", RunId: "r", Version: 7, Now: timestamppb.New(noon), Step: step})
	if err != nil {
		l.b.Fatal(err)
	}
	l.commit(out.GetOutcome())
}

// commit stores the record of an outcome and takes its state from there.
func (l *loop) commit(o *harnessv1.Outcome) {
	rec := &harnessv1.Record{Appended: o.GetAppended(), Events: o.GetEvents(), Body: &harnessv1.Record_Step{Step: o.GetStep()}}
	if to := o.GetStep().GetTo(); to == runlog.End || to == runlog.Park {
		l.b.Fatalf("the run parked or ended: %v", o.GetStep().GetMessage())
	}
	o.GetStep().Snapshot = l.packed(o.GetStep().GetSnapshot())
	l.bytes(rec)
	l.s = l.unpacked(o.GetStep().GetSnapshot())
}

// through is a snapshot as the next executor gets it.
func (l *loop) through(s *harnessv1.Snapshot) *harnessv1.Snapshot { return l.unpacked(l.packed(s)) }

func (l *loop) packed(s *harnessv1.Snapshot) *harnessv1.Snapshot {
	err := runstate.Pack(s, func(data []byte) (*harnessv1.BlobRef, error) {
		digest := content.Digest(data)
		l.store[digest] = data
		return &harnessv1.BlobRef{Digest: digest, Size: uint64(len(data))}, nil
	})
	if err != nil {
		l.b.Fatal(err)
	}
	l.largest = max(l.largest, proto.Size(s))
	return s
}

func (l *loop) unpacked(s *harnessv1.Snapshot) *harnessv1.Snapshot {
	data, err := proto.Marshal(s)
	if err != nil {
		l.b.Fatal(err)
	}
	s = &harnessv1.Snapshot{}
	if err := proto.Unmarshal(data, s); err != nil {
		l.b.Fatal(err)
	}
	if err := l.parts.Unpack(s, func(ref *harnessv1.BlobRef) ([]byte, error) { return l.store[ref.GetDigest()], nil }); err != nil {
		l.b.Fatal(err)
	}
	return s
}

// bytes puts a record into bytes, as its append does.
func (l *loop) bytes(rec *harnessv1.Record) {
	if _, err := proto.Marshal(rec); err != nil {
		l.b.Fatal(err)
	}
}
