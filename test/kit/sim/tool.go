package sim

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Tools of every host. act and run have an effect each time they run. run needs an
// approval. look and set may be repeated.
var tools = []*harnessv1.ToolSpec{
	spec("look", &harnessv1.ToolAnnotations{Reads: true, Idempotent: true, ParallelSafe: true}),
	spec("set", &harnessv1.ToolAnnotations{Writes: true, Idempotent: true}),
	spec("act", &harnessv1.ToolAnnotations{Writes: true}),
	spec("beside", &harnessv1.ToolAnnotations{Writes: true, ParallelSafe: true}),
	spec("run", &harnessv1.ToolAnnotations{Writes: true, Executes: true}),
}

// ClientTools returns the tools that clients run. fax needs an approval.
func ClientTools() []*harnessv1.ToolSpec {
	phone := spec("phone", &harnessv1.ToolAnnotations{})
	fax := spec("fax", &harnessv1.ToolAnnotations{Executes: true})
	phone.Origin, fax.Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
	return []*harnessv1.ToolSpec{phone, fax}
}

func spec(name string, a *harnessv1.ToolAnnotations) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{
		Name: name, Description: name, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: a,
		ParametersSchema: `{"type":"object","properties":{"op":{"type":"string"}},"required":["op"]}`,
	}
}

// checkTool represents commands of the harness. No host lists it.
const checkTool = "check"

func idempotent(name string) bool { return name == "look" || name == "set" }
