package agentfile

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// unset are the fields of an agent that no file sets, with the reason.
var unset = map[protoreflect.Name]string{
	"policies": "the harness sets it for runs that calls have started",
}

// TestEachFieldOfAnAgentHasASection: a field of AgentSpec is a field of the file, or named above. Without it
// the schema and the page have no such field either.
func TestEachFieldOfAnAgentHasASection(t *testing.T) {
	fields := (&harnessv1.AgentSpec{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		name := fields.Get(i).Name()
		set := slices.ContainsFunc(sections, func(s section) bool { return slices.Contains(s.paths, "spec.agent."+string(name)) })
		if set == (unset[name] != "") {
			t.Errorf("%s: add it to sections, or to unset in this file", name)
		}
	}
}
