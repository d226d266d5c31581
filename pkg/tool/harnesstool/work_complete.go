package harnesstool

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// WorkComplete is the name of the tool that ends the work.
const WorkComplete = "work_complete"

var _ = register(60, &Tool{
	Tool: tool.Tool[Run]{
		Spec: &harnessv1.ToolSpec{
			Name: WorkComplete,
			Description: "End the work. Call it once the task is done and checked, with a summary of what was achieved " +
				"and where the results are. It is the only way to finish.",
			ParametersSchema: `{"type":"object","properties":{"summary":{"type":"string","description":"What was achieved, in a few sentences."}},"required":["summary"]}`,
			Origin:           harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations:      &harnessv1.ToolAnnotations{Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING},
		},
		Run: func(*harnessv1.WorkItemLedger, string) workitem.Outcome { return workitem.Outcome{Result: "Recorded."} },
	},
	Alias:        "task_complete",
	Unrestricted: true,
	Summary:      summary,
})

// summary returns the summary in the arguments. Arguments that are stored as a blob
// are the summary as a whole.
func summary(arguments *harnessv1.Content) *harnessv1.Content {
	if arguments.GetBlob() != nil {
		return proto.CloneOf(arguments)
	}
	given, err := tool.Arguments[struct {
		Summary string `json:"summary"`
	}](arguments.GetInline())
	if err != nil {
		return &harnessv1.Content{}
	}
	return content.Inline(given.Summary)
}
