package sim

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Tools that every host offers. act and run have an effect each time that they run;
// run is asked for first. look and set may be run twice.
var tools = []*harnessv1.ToolSpec{
	spec("look", &harnessv1.ToolAnnotations{Reads: true, Idempotent: true, ParallelSafe: true}),
	spec("set", &harnessv1.ToolAnnotations{Writes: true, Idempotent: true}),
	spec("act", &harnessv1.ToolAnnotations{Writes: true}),
	spec("beside", &harnessv1.ToolAnnotations{Writes: true, ParallelSafe: true}),
	spec("run", &harnessv1.ToolAnnotations{Writes: true, Executes: true}),
}

// ClientTools are tools that the clients run: fax is asked for first.
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

// checkTool stands for commands of the harness; no host offers it.
const checkTool = "check"

func idempotent(name string) bool { return name == "look" || name == "set" }
