package runstate

import (
	"reflect"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A field that is added to the message needs an owner, in owner.go.
func TestEveryFieldOfTheSnapshotHasOneOwner(t *testing.T) {
	views := []reflect.Type{
		reflect.TypeFor[DefinitionFields](), reflect.TypeFor[InboxFields](), reflect.TypeFor[TurnFields](),
		reflect.TypeFor[StopFields](), reflect.TypeFor[CompactionFields](), reflect.TypeFor[TreeFields](),
		reflect.TypeFor[RecordFields](), reflect.TypeFor[RuleFields](), reflect.TypeFor[SharedFields](),
	}
	owners := map[string][]string{}
	for _, v := range views {
		for m := range v.Methods() {
			owners[m.Name] = append(owners[m.Name], v.Name())
		}
	}
	fields := (&harnessv1.Snapshot{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		getter := "Get"
		for _, part := range strings.Split(name, "_") {
			getter += strings.ToUpper(part[:1]) + part[1:]
		}
		if got := owners[getter]; len(got) != 1 {
			t.Errorf("field %s is in %d views, want 1: %v", name, len(got), got)
		}
		delete(owners, getter)
	}
	for getter := range owners {
		t.Errorf("%s is in a view and gets no field", getter)
	}
}
