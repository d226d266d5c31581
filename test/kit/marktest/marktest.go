// Package marktest finds the marks that compaction leaves in records.
package marktest

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// marks are the fields that are set only in runs with compaction, by their full names.
var marks = []string{
	"harness.v1.Message.topic", "harness.v1.Message.durability", "harness.v1.Message.preserved", "harness.v1.Message.kept_content",
	"harness.v1.Message.externalize_tokens", "harness.v1.PreparedCall.marks", "harness.v1.PendingCall.marks",
	"harness.v1.ModelResponded.weights", "harness.v1.ModelResponded.view_digest", "harness.v1.ModelResponded.tools", "harness.v1.ModelResponded.counted_tokens",
	"harness.v1.Snapshot.compaction_plan", "harness.v1.Snapshot.tools_digest", "harness.v1.TokenBudget.weighed_messages", "harness.v1.TokenBudget.factor",
}

// In returns the names of the marks that are set in messages of Protocol Buffers.
func In(all ...proto.Message) []string {
	var found []string
	for _, m := range all {
		_ = protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
			if field := p.Path.Index(-1); field.Kind() == protopath.FieldAccessStep {
				if name := string(field.FieldDescriptor().FullName()); slices.Contains(marks, name) && !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
			return nil
		})
	}
	return found
}

// Off switches compaction off.
func Off(s *harnessv1.Snapshot) *harnessv1.Snapshot {
	s.Config.Context.Compaction = proto.Bool(false)
	return s
}
