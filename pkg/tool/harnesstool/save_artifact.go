package harnesstool

import (
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

var _ = register(45, &Tool{
	Tool: tool.Tool[Run]{
		Spec: &harnessv1.ToolSpec{
			Name: workitem.SaveArtifact,
			Description: "Save one result of your work for the user, with its kind. Save each by itself as soon as you have it; the content is the result alone, without words about it. " +
				"Name the sources that it comes from as citations, each with the words that support it, copied exactly. With the id of an earlier artifact you replace that one.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"kind":{"type":"string","description":"What it is."},` +
				`"title":{"type":"string","minLength":1,"maxLength":200},` +
				`"content":{"type":"string","minLength":1},` +
				`"citations":{"type":["array","null"],"maxItems":50,"items":{"type":"object","properties":{"source":{"type":"string","minLength":1,"maxLength":64,"description":"Id of a source."},` +
				`"quote":{"type":"string","maxLength":1000,"description":"Words of the source, exactly as they stand there."}},"required":["source"],"additionalProperties":false}},` +
				`"data":{"type":["object","null"],"description":"Further fields, such as next_steps or priority of a recommendation, or insights: the ids of those that it follows from."},` +
				`"id":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,32}$","description":"Left out, one is made up."}},` +
				`"required":["kind","title","content"],"additionalProperties":false}`,
			Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_ANCHORING, PreservedFields: []string{"id"}},
		},
		Run: workitem.Save,
	},
	Enabled:  func(s Setting) bool { return len(s.ArtifactKinds) > 0 },
	Describe: describeSave,
	Product:  true,
})

// describeSave returns the spec with the kinds of the run.
func describeSave(s Setting) *harnessv1.ToolSpec {
	spec := proto.CloneOf(Find(workitem.SaveArtifact).Spec)
	kinds, _ := json.Marshal(s.ArtifactKinds) // cannot fail
	spec.ParametersSchema = strings.Replace(spec.GetParametersSchema(), `"kind":{"type":"string"`, `"kind":{"type":"string","enum":`+string(kinds), 1)
	return spec
}
