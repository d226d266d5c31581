package transcripts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// start is when every story begins; each record is a second after the one before.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// driver chains the pure decisions over a log in memory. It is the executors'
// loop without the executors: whatever is decided is checked as a commit is
// checked, and every decision is made twice.
type driver struct {
	t     testing.TB
	log   []*harnessv1.Record // version i+1; its stream sequence is in seqs
	seqs  []uint64
	last  uint64 // newest stream sequence
	inbox []*harnessv1.InboxItem
	host  []*harnessv1.ToolSpec // tools of the tool host

	conversation conversation.Conversation
	requests     []*harnessv1.ModelRequest

	// What the world outside does next.
	answers    []answer
	results    map[string][]result
	ledger     string // of the tool host; a new one forgets every call
	crash      string // the worker of the next turn dies behind this journal entry
	forget     bool   // and the tool host loses its ledger then
	onTurn     map[uint32][]func(*driver)
	checks     map[string]*harnessv1.RequirementCoverage // how outputs of the contract stand
	agent      *harnessv1.AgentSpec                      // of the run that is to begin
	task       *harnessv1.TaskContract
	background []*harnessv1.BackgroundState // commands, as the tool host has them
	graph      []*harnessv1.GraphTask
	input      func(*harnessv1.Snapshot) uint64 // tokens that the model reports of its request; nil: as the story says
	compact    func(*harnessv1.Snapshot)        // what compaction does in addition to its decision; may be nil
	judges     judges
	work       *harnessv1.Task // of the run that is to begin
}

// answer is what becomes of one request to the model.
type answer struct {
	response model.Response
	failure  *harnessv1.TurnError
}

// result is what becomes of one tool call.
type result struct {
	text   string
	failed bool
}

var (
	errDied        = errors.New("the worker died")
	errInterrupted = errors.New("the run is interrupted")
)

func newDriver(t testing.TB) *driver {
	t.Helper()
	object := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	host := []*harnessv1.ToolSpec{
		{Name: "read_file", ParametersSchema: object, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Annotations: &harnessv1.ToolAnnotations{Reads: true, Idempotent: true, ParallelSafe: true}},
		{Name: "write_file", ParametersSchema: object, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Annotations: &harnessv1.ToolAnnotations{Writes: true}},
		{Name: "run_command", ParametersSchema: `{"type":"object"}`, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Annotations: &harnessv1.ToolAnnotations{Executes: true}},
	}
	return &driver{
		t: t, host: host, ledger: "ledger-1", results: map[string][]result{}, onTurn: map[uint32][]func(*driver){},
		checks: map[string]*harnessv1.RequirementCoverage{}, judges: newJudges(),
		agent: &harnessv1.AgentSpec{Instructions: "You are the hero of a story.", Model: "script:story"},
	}
}

func (d *driver) now() time.Time { return start.Add(time.Duration(len(d.log)) * time.Second) }

// step is the newest step, with its version.
func (d *driver) step() (*harnessv1.Step, uint64) {
	for i := len(d.log) - 1; i >= 0; i-- {
		if s := d.log[i].GetStep(); s != nil {
			return s, uint64(i + 1)
		}
	}
	return nil, 0
}

func (d *driver) snapshot() *harnessv1.Snapshot {
	s, _ := d.step()
	return s.GetSnapshot()
}

// begin writes the record that the gateway writes.
func (d *driver) begin(spec *harnessv1.RunSpec) {
	d.append("gateway", &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{
		From: "gateway", To: repair.Name,
		Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_IDLE,
			Workflow: workflow.Default(), CreateTime: timestamppb.New(start), RunningSince: timestamppb.New(start),
		},
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START, Spec: spec,
		}},
	}}})
}

// send puts an item into the inbox.
func (d *driver) send(item *harnessv1.InboxItem) {
	d.last++
	item.Sequence, item.Time = d.last, timestamppb.New(d.now())
	if n := len(d.inbox); n > 0 {
		item.PrevSequence = d.inbox[n-1].GetSequence()
	}
	if item.GetId() == "" {
		item.Id = fmt.Sprintf("in%d", len(d.inbox)+1)
	}
	d.inbox = append(d.inbox, item)
}

// rest drives the run until it rests with nothing left in its inbox.
func (d *driver) rest() {
	d.t.Helper()
	for range 5000 {
		step, version := d.step()
		if !runlog.IsRest(step.GetTo()) {
			d.execute(step, version)
			continue
		}
		wake := repair.WakingStep(d.view())
		if wake == nil {
			return
		}
		d.append(repair.Name, &harnessv1.Record{Body: &harnessv1.Record_Step{Step: wake}})
	}
	d.t.Fatal("the run never rests")
}

func (d *driver) view() runlog.View {
	v := runlog.View{}
	for i, rec := range d.log {
		v.Newest = runlog.Entry{Sequence: d.seqs[i], Header: runlog.HeaderOf(rec), Record: rec}
		if rec.GetStep() != nil {
			v.Step = v.Newest
		}
	}
	if n := len(d.inbox); n > 0 {
		v.InboxSequence = d.inbox[n-1].GetSequence()
	}
	return v
}

// execute does the work of the executor that step is addressed to.
func (d *driver) execute(step *harnessv1.Step, version uint64) {
	d.t.Helper()
	in := &harnessv1.StepInput{
		Namespace: "default", RunId: "story", Version: version, Sequence: d.seqs[version-1],
		Now: timestamppb.New(d.now()), Step: step,
	}
	var outcome *harnessv1.Outcome
	switch step.GetTo() {
	case repair.Name:
		outcome = d.decide(repair.Decide, in)
	case compaction.Name:
		outcome = d.decide(d.compaction, in)
		if d.compact != nil {
			d.compact(outcome.GetStep().GetSnapshot())
		}
	case stopdecision.Name:
		outcome = d.decide(stopdecision.Decide, in)
	case turn.Name:
		var err error
		if outcome, err = d.turn(step, version); errors.Is(err, errDied) {
			return // delivered again, to another worker
		}
	default:
		d.t.Fatalf("version %d is addressed to %q", version, step.GetTo())
	}
	d.commit(step, outcome)
}

// compaction decides with the index of the conversation, once it was read.
func (d *driver) compaction(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	if !slices.ContainsFunc(in.GetObserved(), func(o *harnessv1.Observation) bool { return o.GetKey() == compaction.KeyConversation }) {
		return compaction.Decide(in, nil)
	}
	var x view.Index
	x.Add(&d.conversation)
	return compaction.Decide(in, &x)
}

// decide makes a decision twice, with what it needs, and holds it to its purity.
func (d *driver) decide(decide func(*harnessv1.StepInput) (*harnessv1.StepOutput, error), in *harnessv1.StepInput) *harnessv1.Outcome {
	d.t.Helper()
	for range 12 {
		before := encode(d.t, in)
		out, err := decide(in)
		if err != nil {
			d.t.Fatalf("version %d: %v", in.GetVersion(), err)
		}
		again, err := decide(in)
		if err != nil || !bytes.Equal(encode(d.t, out), encode(d.t, again)) {
			d.t.Fatalf("version %d: decided otherwise the second time (%v)", in.GetVersion(), err)
		}
		if !bytes.Equal(before, encode(d.t, in)) {
			d.t.Fatalf("version %d: the decision changed its input", in.GetVersion())
		}
		if out.GetOutcome() != nil {
			return out.GetOutcome()
		}
		for _, key := range out.GetNeeds().GetKeys() {
			in.Observed = append(in.Observed, d.observe(in.GetStep(), out.GetNeeds(), key))
		}
	}
	d.t.Fatalf("version %d: asks on", in.GetVersion())
	return nil
}

func (d *driver) observe(step *harnessv1.Step, needs *harnessv1.Needs, key string) *harnessv1.Observation {
	d.t.Helper()
	if seen := d.observeWork(step, needs, key); seen != nil {
		return seen
	}
	o := &harnessv1.Observation{Key: key}
	switch key {
	case repair.NeedInbox:
		batch := &harnessv1.InboxBatch{Cursor: step.GetSnapshot().GetInboxCursor()}
		for _, item := range d.inbox {
			if item.GetSequence() > batch.GetCursor() {
				batch.Items = append(batch.Items, item)
			}
		}
		if n := len(batch.GetItems()); n > 0 {
			batch.Cursor = batch.GetItems()[n-1].GetSequence()
		}
		o.Value = &harnessv1.Observation_Inbox{Inbox: proto.CloneOf(batch)}
	case repair.NeedEnvironment:
		environment := &harnessv1.Environment{WorkingDirectory: "/w", Platform: "linux/amd64", Listing: "a.txt"}
		if step.GetRepairTrigger().GetSpec().GetWorkspace() != "" {
			environment.Folder = folder
		}
		o.Value = &harnessv1.Observation_Environment{Environment: environment}
	case repair.NeedFolder:
		o.Value = &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{Folder: folder}}
	case compaction.KeyConversation:
		o.Value = &harnessv1.Observation_Conversation{Conversation: &harnessv1.ConversationRead{Messages: uint64(len(d.conversation.Messages))}}
	case compaction.KeyWeights:
		var x view.Index
		x.Add(&d.conversation)
		w := &harnessv1.Weights{FirstMessage: 1}
		for i := range x.Entries {
			w.Tokens = append(w.Tokens, x.Entries[i].Tokens)
		}
		o.Value = &harnessv1.Observation_Weights{Weights: w}
	case compaction.KeyInference:
		o.Value = &harnessv1.Observation_InferenceAvailable{}
	case compaction.KeyTokens:
		o.Value = &harnessv1.Observation_Tokens{Tokens: uint32(step.GetSnapshot().GetTokenBudget().GetUnreportedBytes() / 4)}
	case runstate.KeyBackground:
		o.Value = &harnessv1.Observation_Background{Background: d.killBackground()}
	default:
		output, is := strings.CutPrefix(key, stopdecision.KeyCheck)
		if !is {
			d.t.Fatalf("%s needs %q", step.GetTo(), key)
		}
		seen := d.checks[output]
		if seen == nil {
			seen = &harnessv1.RequirementCoverage{Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "not there"}
		}
		seen = proto.CloneOf(seen)
		seen.RequirementId = output
		o.Value = &harnessv1.Observation_Check{Check: seen}
	}
	return o
}

// commit checks an outcome as the executors' loop does, and more, and stores it.
func (d *driver) commit(before *harnessv1.Step, outcome *harnessv1.Outcome) {
	d.t.Helper()
	step := outcome.GetStep()
	d.checkBackground(step)
	if err := runstate.CheckPhases(before.GetSnapshot(), step); err != nil {
		d.t.Fatal(err)
	}
	if s := step.GetSnapshot(); step.GetTo() == runlog.Park && s.GetParkVersion() == 0 {
		s.ParkVersion = uint64(len(d.log) + 1)
	}
	d.append(step.GetFrom(), &harnessv1.Record{
		Appended: outcome.GetAppended(), Events: outcome.GetEvents(), Body: &harnessv1.Record_Step{Step: step},
	})
	s := step.GetSnapshot()
	if s.GetMessageCount() != uint64(len(d.conversation.Messages)) {
		d.t.Fatalf("version %d counts %d messages, the conversation holds %d", len(d.log), s.GetMessageCount(), len(d.conversation.Messages))
	}
	if runlog.IsRest(step.GetTo()) == (s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING) {
		d.t.Fatalf("version %d goes to %s and says %s", len(d.log), step.GetTo(), s.GetStatus())
	}
	if size := proto.Size(s); size > 16<<10 {
		d.t.Fatalf("version %d has a snapshot of %d bytes", len(d.log), size)
	}
}

func (d *driver) append(executor string, rec *harnessv1.Record) {
	d.t.Helper()
	rec.Namespace, rec.RunId, rec.Schema = "default", "story", runlog.Schema
	rec.Version, rec.CommitTime = uint64(len(d.log)+1), timestamppb.New(d.now())
	rec.Writer = &harnessv1.Writer{Executor: executor, Instance: "worker", Nonce: rec.GetVersion()}
	for i, m := range rec.GetAppended() {
		if want := uint64(len(d.conversation.Messages) + i + 1); m.GetId() != want {
			d.t.Fatalf("version %d appends message %d, the next one is %d", rec.GetVersion(), m.GetId(), want)
		}
	}
	d.last++
	d.log, d.seqs = append(d.log, rec), append(d.seqs, d.last)
	d.conversation.Fold(rec)
}

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// folder is the workspace of a run.
var folder = &harnessv1.WorkspaceFolder{Path: "/w", Inode: 1}
