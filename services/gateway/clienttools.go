package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// CheckClientTools refuses invalid tools of a client: invalid or duplicate names,
// schemas that do not compile, another origin.
func CheckClientTools(field string, tools []*harnessv1.ToolSpec) error {
	if n := len(tools); n > maxClientTools {
		return input.TooLarge(field, n, maxClientTools, "tools")
	}
	if err := input.CheckSize(field, EncodeClientTools(tools), maxClientToolsSize); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, t := range tools {
		of := input.At(field, i)
		if err := input.CheckName(of+".name", t.GetName()); err != nil {
			return err
		}
		if seen[t.GetName()] {
			return fault.Invalid(of+".name", "duplicate name %q", t.GetName())
		}
		seen[t.GetName()] = true
		switch t.GetOrigin() {
		case harnessv1.ToolOrigin_TOOL_ORIGIN_UNSPECIFIED, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		default:
			return fault.Invalid(of+".origin", "must be CLIENT or unset")
		}
		if err := tool.CheckSchema(t.GetParametersSchema()); err != nil {
			return fault.Invalid(of+".parameters_schema", "%v", err)
		}
	}
	return nil
}

// CheckClientNames refuses tools of a client whose name another tool has: the model
// could not tell them apart.
func CheckClientNames(field string, tools []*harnessv1.ToolSpec, names []string) error {
	for i, t := range tools {
		if reserved(t.GetName()) || slices.Contains(names, t.GetName()) {
			return fault.Invalid(input.At(field, i)+".name", "a tool %q already exists; choose another name", t.GetName())
		}
	}
	return nil
}

// reserved reports whether a name has a meaning in every run, whether or not its tool is
// available.
func reserved(name string) bool {
	return name == runstate.ContractQuestion || harnesstool.Find(name) != nil
}

// EncodeClientTools returns the stored form of a run's client tools: equal tools have
// equal bytes.
func EncodeClientTools(tools []*harnessv1.ToolSpec) string {
	all := &harnessv1.ClientTools{}
	for _, t := range tools {
		t = proto.CloneOf(t)
		t.Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
		all.Tools = append(all.Tools, t)
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("valid tools cannot be encoded: %v", err)) // texts that were decoded are UTF-8
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil { // the spaces in it are another program's to choose
		panic(fmt.Sprintf("tools are no JSON: %v", err))
	}
	return compact.String()
}
