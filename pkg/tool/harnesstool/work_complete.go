package harnesstool

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// WorkComplete is the name of the tool that ends the work.
const WorkComplete = "work_complete"

const summaryProperty = `"summary":{"type":"string","description":"What was achieved, in a few sentences."}`

var _ = register(60, &Tool{
	Tool: tool.Tool[Run]{
		Spec: &harnessv1.ToolSpec{
			Name: WorkComplete,
			Description: "End the work. Call it once the task is done and checked, with a summary of what was achieved " +
				"and where the results are. It is the only way to finish.",
			ParametersSchema: `{"type":"object","properties":{` + summaryProperty + `},"required":["summary"]}`,
			Origin:           harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations:      &harnessv1.ToolAnnotations{Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING},
		},
		Run: func(*harnessv1.WorkItemLedger, string) workitem.Outcome { return workitem.Outcome{Result: "Recorded."} },
	},
	Alias:        "task_complete",
	Product:      true,
	Unrestricted: true,
	Describe:     describeCompletion,
	Summary:      summary,
})

// describeCompletion returns the spec of the tool in a run. The output schema is part of a
// description, because an output that does not fit is no invalid call: it rejects the stop.
func describeCompletion(s Setting) *harnessv1.ToolSpec {
	spec := Find(WorkComplete).Spec
	if s.OutputSchema == "" {
		return spec
	}
	shown := s.OutputSchema
	var line bytes.Buffer
	if json.Compact(&line, []byte(shown)) == nil {
		shown = line.String()
	}
	described, err := json.Marshal("The result of the work, as JSON. The work is done only with an output that fits this JSON Schema: " + shown)
	if err != nil {
		panic(err) // a text is always JSON
	}
	spec = proto.CloneOf(spec)
	spec.ParametersSchema = `{"type":"object","properties":{` + summaryProperty + `,"output":{"description":` + string(described) + `}},"required":["summary"]}`
	return spec
}

// maxFinding bounds a finding about an output, in bytes.
const maxFinding = 240

// CompletionOf returns what a call of the named tool gave if it ends the work of a run whose
// result has a schema; nil otherwise.
func CompletionOf(name, arguments string, result *schema.Schema) *harnessv1.Completion {
	if name != WorkComplete || result == nil {
		return nil
	}
	completion := &harnessv1.Completion{Summary: summary(content.Inline(arguments))}
	given, err := tool.Arguments[struct {
		Output json.RawMessage `json:"output"`
	}](arguments)
	if err != nil || given.Output == nil {
		completion.Problem = "it is missing"
		return completion
	}
	value, err := schema.Decode(string(given.Output))
	if err == nil {
		err = result.Validate(value, maxFinding)
	}
	if err != nil {
		completion.Problem = err.Error()
		return completion
	}
	var line bytes.Buffer
	if err := json.Compact(&line, given.Output); err != nil {
		completion.Problem = err.Error()
		return completion
	}
	completion.Output = content.Inline(line.String())
	return completion
}

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
