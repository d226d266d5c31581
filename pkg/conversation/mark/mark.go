// Package mark marks the messages of a run when they are appended, so that compaction need
// not guess later what they are: how the result of a call may be shortened, and which of its
// fields and bytes survive.
//
// The marks of a result are decided when its call is, from the tool and the arguments, and
// travel with the call until the result is there. In runs without compaction there are none.
// The package is pure and returns no errors: what cannot be read is not preserved.
package mark

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of the preserved part of a result.
const (
	maxFields = 8
	maxName   = 64  // bytes of a name
	maxValue  = 160 // bytes of a value
	// maxPending bounds names and values of a call that waits, in bytes: the state holds
	// them for up to runstate.MaxPending calls.
	maxPending = 256
)

// planFile is the name of the file of which the newest read is kept, in any case.
const planFile = "plan.md"

// On reports whether messages of a run are marked.
func On(c *harnessv1.LoopConfig) bool { return c.GetContext().GetCompaction() }

// OfCall returns the marks of the result of a call of a tool, nil in a run without
// compaction. The configuration of the run precedes the tool's declaration. spec is nil for
// an unknown tool. Arguments that are no JSON object have no fields.
func OfCall(c *harnessv1.LoopConfig, tool string, spec *harnessv1.ToolSpec, arguments string) *harnessv1.ResultMarks {
	if !On(c) {
		return nil
	}
	a := spec.GetAnnotations()
	usual := usualOf(tool, c.GetContext().GetExternalizeTokens())
	m := &harnessv1.ResultMarks{Durability: cmp.Or(a.GetDurability(), usual.durability), ExternalizeTokens: usual.externalize}
	fields := a.GetPreservedFields()
	if a.GetDurability() == harnessv1.Durability_DURABILITY_UNSPECIFIED && len(fields) == 0 {
		fields = usual.fields
	}
	for _, o := range c.GetContext().GetDurability() {
		if o.GetTool() != tool {
			continue
		}
		m.Durability = cmp.Or(o.GetDurability(), m.GetDurability())
		if len(o.GetPreservedFields()) > 0 {
			fields = o.GetPreservedFields()
		}
		m.ExternalizeTokens = cmp.Or(o.GetExternalizeTokens(), m.GetExternalizeTokens())
	}
	m.Durability = cmp.Or(m.GetDurability(), harnessv1.Durability_DURABILITY_ANCHORING)
	if reads := a.GetReads() && !a.GetExplores(); len(fields) > 0 || reads {
		given := members(arguments)
		m.Preserved = preserve(fields, given)
		if reads {
			keepPlan(m, given)
		}
	}
	return m
}

// keepPlan keeps the result if the call reads a plan file. Its path is preserved, because a
// later read of the same path replaces it.
func keepPlan(m *harnessv1.ResultMarks, given map[string]json.RawMessage) {
	at := planPath(given)
	if at == "" {
		return
	}
	m.KeptContent = harnessv1.KeptContent_KEPT_CONTENT_PLAN_FILE
	rest := slices.DeleteFunc(m.GetPreserved(), func(f *harnessv1.PreservedField) bool { return f.GetName() == pathField })
	m.Preserved = append([]*harnessv1.PreservedField{{Name: pathField, Value: content.Line(at, maxValue)}}, rest[:min(len(rest), maxFields-1)]...)
}

// pathField is the preserved field that identifies a plan file.
const pathField = "path"

// planPath returns the path of the plan file among arguments; empty if there is none.
func planPath(given map[string]json.RawMessage) string {
	for _, name := range append([]string{pathField}, slices.Sorted(maps.Keys(given))...) {
		var at string
		if json.Unmarshal(given[name], &at) == nil && strings.EqualFold(path.Base(at), planFile) {
			return path.Clean(at)
		}
	}
	return ""
}

// Pending returns the marks of a call that waits, as the state holds them.
func Pending(m *harnessv1.ResultMarks) *harnessv1.ResultMarks {
	if m == nil {
		return nil
	}
	m = proto.CloneOf(m)
	left := maxPending
	m.Preserved = slices.DeleteFunc(m.GetPreserved(), func(f *harnessv1.PreservedField) bool {
		n := len(f.GetName()) + len(f.GetValue())
		if n > left {
			return true
		}
		left -= n
		return false
	})
	return m
}

// Result marks the result of a call; nothing happens without marks. text is the result, or
// its beginning if it is long. exitCode is that of a command; nil for other calls.
func Result(result *harnessv1.Message, m *harnessv1.ResultMarks, text string, exitCode *int32) {
	if m == nil {
		return
	}
	result.Durability, result.ExternalizeTokens = m.GetDurability(), m.GetExternalizeTokens()
	result.Preserved = complete(m.GetPreserved(), outcome{text: text, failed: result.GetIsError(), exitCode: exitCode})
	if m.GetKeptContent() != harnessv1.KeptContent_KEPT_CONTENT_UNSPECIFIED && !result.GetIsError() {
		result.Kept, result.KeptContent = true, m.GetKeptContent()
	}
}

// Completion marks the answer of a model that reports finished work.
func Completion(answer *harnessv1.Message) {
	answer.Kept, answer.KeptContent = true, harnessv1.KeptContent_KEPT_CONTENT_COMPLETION
}
