package harnesstool

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

var _ = register(30, func() *Tool {
	t := workItemTool(workitem.ListItems, workitem.List, "List all work items in order, with status, priority, role and notes.", "", "", "")
	t.Spec.Annotations = &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_EPHEMERAL}
	return t
}())
