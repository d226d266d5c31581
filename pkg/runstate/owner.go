package runstate

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Each field of a snapshot belongs to one of the interfaces below, which are the views of its
// owners: a function that takes one reads the fields of this owner only. The packages in the
// directive may assign the fields, each with the packages below it; so may this package, whose functions the others
// call. go -C tools run ./owners reports every other assignment, and a test fails for a
// field that no view has.

// Views of a snapshot; a snapshot is all of them.
var (
	_ DefinitionFields = (*harnessv1.Snapshot)(nil)
	_ InboxFields      = (*harnessv1.Snapshot)(nil)
	_ TurnFields       = (*harnessv1.Snapshot)(nil)
	_ StopFields       = (*harnessv1.Snapshot)(nil)
	_ CompactionFields = (*harnessv1.Snapshot)(nil)
	_ TreeFields       = (*harnessv1.Snapshot)(nil)
	_ RecordFields     = (*harnessv1.Snapshot)(nil)
	_ RuleFields       = (*harnessv1.Snapshot)(nil)
	_ SharedFields     = (*harnessv1.Snapshot)(nil)
)

// DefinitionFields are what a run is made of. Repair sets them at the start and changes them by
// inputs: another mode, another model, more budget, the next goal.
//
//snapshot:writers services/repair
type DefinitionFields interface {
	GetMaxTurns() uint32
	GetWorkflow() []string
	GetConfig() *harnessv1.LoopConfig
	GetFirstSequence() uint64
	GetModel() string
	GetFallbackModels() []string
	GetReasoning() *harnessv1.ReasoningConfig
	GetWorkspace() string
	GetFolder() *harnessv1.WorkspaceFolder
	GetGoal() *harnessv1.Content
	GetGoalPreview() string
	GetCreateTime() *timestamppb.Timestamp
	GetStartedBy() string
	GetToolRules() []*harnessv1.ToolRule
	GetClientTools() *harnessv1.Content
	GetAutonomous() bool
	GetTaskContract() *harnessv1.TaskContract
	GetMode() string
	GetDefinition() *harnessv1.Definition
	GetParent() *harnessv1.Parent
	GetTask() *harnessv1.Task
	GetEntitlements() []string
	GetTier() string
	GetFeatures() []string
	GetSkills() bool
	GetMcp() *harnessv1.McpState
}

// InboxFields are the position in the inbox, the accepted inputs and the grants, so that an input
// that is sent again has no second effect.
//
//snapshot:writers services/repair
type InboxFields interface {
	GetInboxCursor() uint64
	GetDrainedItems() []uint64
	GetAnsweredCalls() []uint64
	GetAnsweredBy() []uint64
	GetGrantedTools() []string
	GetGrants() []*harnessv1.ToolRule
}

// TurnFields are the present turn, and the items and texts that earlier requests have shown the
// model.
//
//snapshot:writers services/turn
type TurnFields interface {
	GetTurn() *harnessv1.TurnState
	GetTokenBudget() *harnessv1.TokenBudget
	GetFailedTries() uint32
	GetContinuationCount() uint32
	GetPendingTools() []*harnessv1.PendingTool
	GetLedgers() *harnessv1.LedgerState
	GetJit() *harnessv1.JitState
	GetItemsShown() uint64
	GetItemsShownTurn() uint32
	GetToldControls() []string
	GetToldTurn() uint32
	GetModelAdjustments() []*harnessv1.ModelAdjustment
	GetOutput() *harnessv1.Content
	GetOutputProblem() string
	GetAnswerModel() string
	GetToolsDigest() string
}

// StopFields count the stops that the gates of the stop decision have rejected in the segment, and
// the parks of a step at which workers die.
//
//snapshot:writers services/stopdecision
type StopFields interface {
	GetWorkCompleteRetries() uint32
	GetOutputRejections() uint32
	GetAnswerSentBack() bool
	GetRejectedKind() string
	GetRejectedCount() uint32
	GetPoisonParks() uint32
}

// CompactionFields are what compaction has decided about the view of the conversation.
//
//snapshot:writers services/compaction
type CompactionFields interface {
	GetCompactionPlan() *harnessv1.CompactionPlan
}

// TreeFields are the runs below a run.
//
//snapshot:writers pkg/tree
type TreeFields interface {
	GetChildren() []*harnessv1.Child
	GetGraphs() []*harnessv1.Graph
	GetShort() string
}

// RecordFields are set by the shell that appends the record of the snapshot.
//
//snapshot:writers pkg/executor services/gateway/gatewayserver services/repair/repairserver
type RecordFields interface {
	GetTrace() *harnessv1.TraceState
	GetConversationBytes() uint64
	GetAttachmentBytes() uint64
}

// RuleFields change through the functions of this package only.
//
//snapshot:writers pkg/runstate
type RuleFields interface {
	GetPausedPhase() harnessv1.Phase
	GetSegment() uint32
	GetTurnCount() uint32
	GetMessageCount() uint64
	GetSpent() *harnessv1.Spent
	GetRunningSince() *timestamppb.Timestamp
	GetActivity() *harnessv1.Activity
	GetToolUsage() []*harnessv1.ToolUsage
	GetBackgroundCommands() []*harnessv1.BackgroundCommand
	GetChangedFiles() *harnessv1.ChangedFiles
	GetExpireTime() *timestamppb.Timestamp
}

// SharedFields have more than one writer, each for the reason in its comment.
type SharedFields interface {
	// GetStatus returns the status. Repair and the stop decision park and end runs, the executor
	// fails those that cannot continue, and a deletion cancels.
	//
	//snapshot:writers services/repair services/stopdecision pkg/executor pkg/tree
	GetStatus() harnessv1.RunStatus
	// GetStopReason returns why the run has the status.
	//
	//snapshot:writers services/repair services/stopdecision pkg/executor pkg/tree
	GetStopReason() *harnessv1.StopReason
	// GetPhase returns the phase. ChangePhase changes it; repair sets the first one, and the
	// executor keeps the one of a step that it cannot decide.
	//
	//snapshot:writers services/repair pkg/executor
	GetPhase() harnessv1.Phase
	// GetWakeAt returns when a parked run wakes. Repair and the stop decision park.
	//
	//snapshot:writers services/repair services/stopdecision
	GetWakeAt() *timestamppb.Timestamp
	// GetParkVersion returns the version of the park. A decision that parks clears it, and the executor
	// that appends the record sets it.
	//
	//snapshot:writers services/repair services/stopdecision pkg/executor
	GetParkVersion() uint64
	// GetAccepted reports whether the work counts as done. The stop decision accepts it, and
	// repair ends the segment of a parked run without.
	//
	//snapshot:writers services/repair services/stopdecision
	GetAccepted() bool
	// GetStopping returns the end that waits for the runs below: the stop decision begins it, and
	// repair finishes it.
	//
	//snapshot:writers services/repair services/stopdecision
	GetStopping() *harnessv1.Stopping
	// GetPendingToolCalls returns the calls that wait. The turn adds those of the model and the
	// stop decision questions of the contract; the end of a run drops them.
	//
	//snapshot:writers services/turn services/stopdecision pkg/executor
	GetPendingToolCalls() []*harnessv1.PendingCall
	// GetAnswer returns the answer of the turn. The stop decision restores that of a better
	// attempt.
	//
	//snapshot:writers services/turn services/stopdecision
	GetAnswer() *harnessv1.Content
	// GetSummary returns the summary that the agent gave with its answer.
	//
	//snapshot:writers services/turn services/stopdecision
	GetSummary() *harnessv1.Content
	// GetWorkItemLedger returns the work items. Repair makes those of the templates; turns and
	// gates change the copy that OwnLedger returns.
	//
	//snapshot:writers services/repair
	GetWorkItemLedger() *harnessv1.WorkItemLedger
	// GetCoverageLedger returns the state of the contract. Repair makes it, and the stop decision
	// checks.
	//
	//snapshot:writers services/repair services/stopdecision
	GetCoverageLedger() *harnessv1.CoverageLedger
	// GetProgressTracker returns the fingerprints of turns. The stop decision compares them; the
	// turn remembers what it has told the model.
	//
	//snapshot:writers services/turn services/stopdecision
	GetProgressTracker() *harnessv1.ProgressTracker
	// GetDoomLoop returns the last calls. RecordOutcome adds them; the stop decision remembers
	// what it has told the model.
	//
	//snapshot:writers services/stopdecision
	GetDoomLoop() *harnessv1.DoomLoop
	// GetHooks returns what hooks want of the loop. Each executor calls hooks, and does what they want.
	//
	//snapshot:writers services/repair services/turn services/stopdecision
	GetHooks() *harnessv1.HookState
	// GetInstructionFiles returns the digests of the files that the model was shown: at the
	// start by repair, after a change by the turn.
	//
	//snapshot:writers services/repair services/turn
	GetInstructionFiles() []*harnessv1.FileDigest
	// GetQuality returns the judgement of the work. Repair classifies the goal, the turn counts
	// and the stop decision judges.
	//
	//snapshot:writers services/repair services/turn services/stopdecision
	GetQuality() *harnessv1.QualityState
}
