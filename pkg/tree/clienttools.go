package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// ClientTools returns those of a run's client tools that a sub-agent has: only those that its definition lists. text
// is the JSON form that a snapshot refers to, and so is the result; empty for none.
func ClientTools(text string, def *harnessv1.SubAgent) (string, error) {
	all := &harnessv1.ClientTools{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), all); err != nil {
		return "", fmt.Errorf("parse the client tools: %w", err)
	}
	all.Tools = slices.DeleteFunc(all.GetTools(), func(t *harnessv1.ToolSpec) bool {
		return !slices.ContainsFunc(def.GetTools(), func(p string) bool { return tool.Matches(p, t.GetName()) })
	})
	if len(all.GetTools()) == 0 {
		return "", nil
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(all)
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, data) // the spaces in it differ between programs
	return compact.String(), err
}
