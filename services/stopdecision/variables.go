package stopdecision

import (
	"context"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// smallArtifact is the size of the largest artifact that expressions see, in bytes.
const smallArtifact = 16 << 10

// Variables returns the state that the expressions of CUSTOM outputs and CheckServices
// see (expr.State). text reads a content.
func Variables(ctx context.Context, step *harnessv1.Step, response string, text func(context.Context, *harnessv1.Content) (string, error)) (map[string]any, error) {
	s := step.GetSnapshot()
	items, artifacts := []map[string]any{}, map[string]any{}
	for _, item := range s.GetWorkItemLedger().GetItems() {
		items = append(items, map[string]any{
			"id": item.GetId(), "title": item.GetTitle(), "has_artifact": item.GetArtifact() != nil,
			"status":   strings.TrimPrefix(item.GetStatus().String(), "WORK_ITEM_STATUS_"),
			"priority": strings.TrimPrefix(item.GetPriority().String(), "WORK_ITEM_PRIORITY_"),
			"role":     strings.TrimPrefix(item.GetRole().String(), "ARTIFACT_ROLE_"),
		})
		if a := item.GetArtifact(); a != nil && a.GetBlob().GetSize() <= smallArtifact && len(a.GetInline()) <= smallArtifact {
			content, err := text(ctx, a)
			if err != nil {
				return nil, err
			}
			artifacts[item.GetId()] = content
		}
	}
	return map[string]any{
		"response": response, "goal": s.GetGoalPreview(), "mode": runstate.Mode(s),
		"turn": int64(step.GetTurnComplete().GetTurnNumber()), "max_turns": int64(s.GetMaxTurns()),
		"tool_usage": toolUsage(s),
		"reads":      int64(s.GetActivity().GetReads()), "writes": int64(s.GetActivity().GetWrites()),
		"explores": int64(s.GetActivity().GetExplores()), "files_changed": int64(s.GetActivity().GetFilesChanged()),
		"work_items": items, "artifacts": artifacts, "called_work_complete": step.GetTurnComplete().GetCalledWorkComplete(),
	}, nil
}

// toolUsage returns the number of calls of each tool.
func toolUsage(s runstate.RuleFields) map[string]any {
	usage := map[string]any{}
	for _, u := range s.GetToolUsage() {
		usage[u.GetTool()] = int64(u.GetCalls())
	}
	return usage
}
