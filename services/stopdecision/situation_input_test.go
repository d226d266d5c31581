package stopdecision_test

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

func (c situation) input() *harnessv1.StepInput {
	s := at(4)
	s.Turn = &harnessv1.TurnState{Number: 4, CalledTools: !c.silent, Calls: 1, AgentDone: c.done, CalledWorkComplete: c.called}
	if c.silent {
		s.Turn.Calls = 0
	}
	if c.maxTurns {
		s.MaxTurns = 4
	}
	turn := &harnessv1.TurnComplete{TurnNumber: 4, Interrupted: c.interrupted, AgentDone: c.done, CalledWorkComplete: c.called, Retaken: c.retaken}
	switch long, is := strings.CutPrefix(c.failure, tooLong); {
	case is:
		turn.Error = failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED)
		refuse(s, strings.TrimSpace(long))
	case c.failure != "":
		kind := harnessv1.TurnErrorKind_value["TURN_ERROR_KIND_"+strings.ToUpper(c.failure)]
		turn.Error = failed(harnessv1.TurnErrorKind(kind))
	}
	if c.awaiting != "" {
		s.Phase, s.Turn.Open, turn.Awaiting = harnessv1.Phase_PHASE_AWAITING_TOOL, true, true
		s.PendingToolCalls = []*harnessv1.PendingCall{{
			CallId: "c", Tool: "t", Kind: c.awaiting, Why: "why", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
		}}
	}
	s.Hooks = &harnessv1.HookState{}
	if c.pause {
		s.Hooks.Pause = "look"
	}
	if c.replan {
		s.Hooks.Replan = "another way"
	}
	switch c.retries {
	case "last":
		s.WorkCompleteRetries = 2
	case "used":
		s.WorkCompleteRetries = 3
	}
	switch c.policy {
	case "strict":
		s.Config.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT
	case "not required":
		s.Config.Stop.RequireWorkComplete = proto.Bool(false)
	}
	in := &harnessv1.StepInput{Namespace: "n", RunId: "r", Version: 7, Now: timestamppb.New(noon)}
	if c.stopAsked {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: stopdecision.KeyStop, Value: &harnessv1.Observation_StopAsked{StopAsked: true}})
	}
	in.Observed = append(in.Observed, c.agree(s)...)
	c.work(s)
	c.subscribe(s)
	c.repeat(s)
	in.Step = &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: turn}}
	return in
}

// refuse gives the run a request that a model has refused as too long.
func refuse(s *harnessv1.Snapshot, how string) {
	s.TokenBudget = &harnessv1.TokenBudget{Exceeded: true, Refusals: 1}
	switch how {
	case "again":
		s.TokenBudget.Refusals = 2
	case "off":
		s.Config.Context.Compaction = proto.Bool(false)
	case "custom":
		s.Workflow = []string{workflow.Repair, workflow.Turn, workflow.StopDecision}
	case "unfreed":
		s.Phase = harnessv1.Phase_PHASE_EXECUTING
	case "unrefused":
		s.TokenBudget.Exceeded = false
	}
}

// agree gives the run its contract, and returns the observation of the output.
func (c situation) agree(s *harnessv1.Snapshot) []*harnessv1.Observation {
	if c.contract == "" {
		return nil
	}
	task := &harnessv1.TaskContract{Goal: "g", RequiredOutputs: []*harnessv1.RequiredOutput{{
		Id: "out", Description: "The output", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "f"},
	}}}
	asked := c.contract == "asks" || c.contract == "asks no user" || c.contract == "answered"
	if asked {
		task.Questions = []*harnessv1.UserQuestion{{Id: "q", Question: "Which?", Required: proto.Bool(true)}}
	}
	s.TaskContract = contract.Resolve(task)
	s.CoverageLedger = contract.NewLedger(s.GetTaskContract())
	s.Autonomous = c.contract == "asks no user"
	if c.contract == "answered" {
		s.CoverageLedger.Answers = []*harnessv1.QuestionAnswer{{QuestionId: "q", Answer: content.Inline("this")}}
	}
	if c.contract == "unseen" {
		return nil
	}
	return []*harnessv1.Observation{checked("out", c.contract != "unmet")}
}

// checked returns the observation of an output.
func checked(id string, there bool) *harnessv1.Observation {
	seen := &harnessv1.RequirementCoverage{RequirementId: id, Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "there is no file f"}
	if there {
		seen = &harnessv1.RequirementCoverage{
			RequirementId: id, Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: 1,
			Evidence: []*harnessv1.Evidence{{Kind: "file", Text: "f"}},
		}
	}
	return &harnessv1.Observation{Key: stopdecision.KeyCheck + id, Value: &harnessv1.Observation_Check{Check: seen}}
}

// work gives the run work items.
func (c situation) work(s *harnessv1.Snapshot) {
	if c.items == "" {
		return
	}
	s.Config.WorkItems.Enabled = proto.Bool(true)
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w1", Title: "One", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE}}}
	if c.items == "open" {
		s.WorkItemLedger.Items = append(s.WorkItemLedger.Items, &harnessv1.WorkItem{Id: "w2", Title: "Two", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING})
	}
}

// subscribe gives the run a subscriber of agent_stop.
func (c situation) subscribe(s *harnessv1.Snapshot) {
	if c.hook == "" {
		return
	}
	h := &harnessv1.Hook{Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP}
	if c.hook == "called" {
		h.Grpc = "127.0.0.1:1"
	} else {
		h.Cel, h.Reason = "true", "because"
		h.Action = harnessv1.HookAction(harnessv1.HookAction_value["HOOK_ACTION_"+strings.ToUpper(strings.TrimSuffix(c.hook, "d"))])
	}
	if c.hook == "paused" { // for this turn already
		s.Hooks.ReviewedStop = 4
	}
	s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{h}}
}

// repeat gives the run a history of calls.
func (c situation) repeat(s *harnessv1.Snapshot) {
	s.DoomLoop = &harnessv1.DoomLoop{}
	for n := range uint64(6) {
		strict, loose := n+10, n+20
		if strings.HasPrefix(c.loop, "strict") && n > 2 {
			strict, loose = 1, 2
		}
		if strings.HasPrefix(c.loop, "loose") {
			loose = 2
		}
		progress.RecordCall(s.GetDoomLoop(), "read_file", strict, loose)
	}
	if n, is := strings.CutPrefix(c.loop, "strict "); is {
		s.DoomLoop.Corrections = uint32(n[0] - '0')
	}
	if c.loop == "loose told" {
		s.DoomLoop.CallsSinceCorrection = 3
	}
	s.ProgressTracker = &harnessv1.ProgressTracker{DistinctOutcomes: 6, Fingerprints: []uint64{1, 2}}
	if c.stall {
		progress.RecordStates(s.GetProgressTracker(), workitem.Statuses(s.GetWorkItemLedger()), contract.Statuses(s.GetCoverageLedger()))
		now := progress.Fingerprint(s.GetProgressTracker())
		s.ProgressTracker.Fingerprints = []uint64{now, now}
	}
}
