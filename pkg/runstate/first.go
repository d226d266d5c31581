package runstate

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// ParentOf returns what a run knows of its parent at a step; nil for a root. At its first step the
// snapshot has none yet.
func ParentOf(step *harnessv1.Step) *harnessv1.Parent {
	return cmp.Or(step.GetSnapshot().GetParent(), step.GetRepairTrigger().GetParent())
}

// FirstStep returns the step that starts a run. from is its writer. spec is valid, and its
// goal is inline or a reference; tools refers to the tools that the client runs, nil for
// none; caller starts the run. Repair, the first executor, fills in the fields that the spec leaves
// open.
func FirstStep(from string, spec *harnessv1.RunSpec, tools *harnessv1.Content, caller string, now time.Time) *harnessv1.Step {
	cycle := workflow.Of(spec.GetWorkflow())
	created := timestamppb.New(now)
	return &harnessv1.Step{
		From: from,
		To:   cycle[0],
		Snapshot: &harnessv1.Snapshot{
			Status:         harnessv1.RunStatus_RUN_STATUS_RUNNING,
			Phase:          harnessv1.Phase_PHASE_IDLE,
			Workflow:       cycle,
			MaxTurns:       Resolve(spec.GetConfig(), 0).GetStop().GetMaxTurns(),
			Model:          spec.GetAgent().GetModel(),
			FallbackModels: spec.GetAgent().GetFallbackModels(),
			Workspace:      spec.GetWorkspace(),
			ClientTools:    tools,
			Autonomous:     spec.GetAgent().GetAutonomous(),
			GoalPreview:    content.Cut(content.Text(spec.GetGoal()), content.MaxPreview),
			CreateTime:     created,
			StartedBy:      caller,
			RunningSince:   created,
		},
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause:  harnessv1.TriggerCause_TRIGGER_CAUSE_START,
			Spec:   spec,
			Caller: caller,
		}},
	}
}
