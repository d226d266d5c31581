package harnesstool

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// ReadArtifact is the name of the tool that reads messages of the run again.
const ReadArtifact = view.ReadArtifact

// It neither reads nor explores as far as the rules are concerned: it gives the agent nothing
// that the run has not had before.
var _ = register(80, &Tool{
	Tool: tool.Tool[Run]{Spec: &harnessv1.ToolSpec{
		Name: ReadArtifact,
		Description: "Read earlier messages of this run again, in full. Use it for what the conversation shows shortened, cleared, as a summary or not at all: " +
			"such places name the ref. Read only the part that you need. With pattern you get the lines that match, each with its offset; " +
			`with offset and limit you get that part. Example: {"ref":"m412","pattern":"(?i)error"}, then {"ref":"m412","offset":18200,"limit":4000}.`,
		ParametersSchema: `{"type":"object","properties":{` +
			`"ref":{"type":"string","minLength":1,"description":"One message, such as m412, or several that follow each other, such as m380-m412."},` +
			`"offset":{"type":"integer","minimum":0,"maximum":1000000000,"description":"Where to begin, in bytes of the text of ref. Default: at its beginning."},` +
			`"limit":{"type":"integer","minimum":0,"maximum":1000000000,"description":"The most bytes to show. Default: as many as a result can have."},` +
			`"pattern":{"type":"string","maxLength":1000,"description":"RE2 regular expression. Only lines that match it are shown."}},"required":["ref"],"additionalProperties":false}`,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
		Annotations: &harnessv1.ToolAnnotations{
			Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_REPLAYABLE, PreservedFields: []string{"ref"},
		},
	}},
	Describe: describeRead,
	Messages: readRequest,
})

// describeRead returns the spec: without compaction the only places are shortened ones.
func describeRead(s Setting) *harnessv1.ToolSpec {
	spec := Find(ReadArtifact).Spec
	if s.Compaction {
		return spec
	}
	spec = proto.CloneOf(spec)
	spec.Description = strings.Replace(spec.GetDescription(), "shortened, cleared, as a summary or not at all", "shortened", 1)
	return spec
}

// readRequest returns what a call reads. The arguments have passed the schema.
func readRequest(arguments string) readback.Request {
	given, _ := tool.Arguments[struct {
		Ref     string  `json:"ref"`
		Offset  float64 `json:"offset"`
		Limit   float64 `json:"limit"`
		Pattern string  `json:"pattern"`
	}](arguments)
	return readback.Request{Ref: given.Ref, Offset: int(given.Offset), Limit: int(given.Limit), Pattern: given.Pattern}
}
