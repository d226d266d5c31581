package harnesstool_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

var (
	items      = []string{workitem.Add, workitem.Update, workitem.List, workitem.SetArtifact, workitem.FlagRevision}
	everything = harnesstool.Setting{WorkItems: true, Questions: true, Compaction: true, Wait: true, ArtifactKinds: []string{"insight"}, Servers: []string{"s"}}
)

func namesOf(specs []*harnessv1.ToolSpec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.GetName())
	}
	return names
}

func TestSpecsFollowSetting(t *testing.T) {
	for _, c := range []struct {
		setting harnesstool.Setting
		want    []string
	}{
		{harnesstool.Setting{}, []string{"work_complete", "read_artifact"}},
		{harnesstool.Setting{Questions: true}, []string{"work_complete", "ask_user", "read_artifact"}},
		{harnesstool.Setting{WorkItems: true}, append(slices.Clone(items), "work_complete", "read_artifact")},
		{harnesstool.Setting{Compaction: true}, []string{"work_complete", "read_artifact"}},
		{harnesstool.Setting{Wait: true}, []string{"work_complete", "wait", "read_artifact"}},
		{harnesstool.Setting{ArtifactKinds: []string{"insight"}}, []string{"save_artifact", "work_complete", "read_artifact"}},
		{everything, slices.Concat(items[:4], []string{"save_artifact"}, items[4:], []string{"work_complete", "ask_user", "wait", "read_artifact", "find_tools", "call_tool"})},
	} {
		if got := namesOf(harnesstool.Specs(c.setting)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.setting, got, c.want)
		}
	}
	if !slices.Equal(harnesstool.Names(), namesOf(harnesstool.Specs(everything))) {
		t.Errorf("the names are %v", harnesstool.Names())
	}
}

func TestEveryToolRunsReadsAsksOrWaits(t *testing.T) {
	for _, name := range harnesstool.Names() {
		tool := harnesstool.Find(name)
		ways := 0
		for _, has := range []bool{tool.Run != nil, tool.Messages != nil, tool.Question != nil, tool.Wait != nil, tool.Search} {
			if has {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s must either run, read messages, ask or wait", name)
		}
		if tool.Spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS || harnesstool.Of(tool.Spec) != tool {
			t.Errorf("%s is not a tool of the harness", name)
		}
	}
}

func TestFindKnowsAliases(t *testing.T) {
	if harnesstool.CanonicalName("task_complete") != harnesstool.WorkComplete || harnesstool.CanonicalName("read_file") != "read_file" {
		t.Error("an alias is not resolved, or another name is changed")
	}
	for name, reserved := range map[string]bool{"task_complete": true, "ask_user": true, "work_complete": false, "": false, "read_file": false} {
		if harnesstool.IsReserved(name) != reserved {
			t.Errorf("%q: reserved is %t", name, !reserved)
		}
	}
	if harnesstool.Find("") != nil || harnesstool.Find("read_file") != nil {
		t.Error("a tool of another place is found")
	}
	if harnesstool.Of(&harnessv1.ToolSpec{Name: "work_complete", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}) != nil {
		t.Error("a tool host's tool of the same name is taken for the harness's")
	}
}

func TestWorkItemToolsChangeLedger(t *testing.T) {
	ledger := &harnessv1.WorkItemLedger{}
	for _, c := range []struct{ name, arguments string }{
		{workitem.Add, `{"title":"Sums"}`}, {workitem.Update, `{"id":"w1","status":"DONE"}`}, {workitem.List, `{}`},
		{workitem.SetArtifact, `{"id":"w1","content":"1 + 1 = 2"}`}, {workitem.FlagRevision, `{"id":"w1","reason":"wrong"}`},
	} {
		before := proto.CloneOf(ledger)
		if o := harnesstool.Find(c.name).Run(ledger, c.arguments); o.IsError || o.Result == "" {
			t.Errorf("%s: %+v", c.name, o)
		}
		if changed := !proto.Equal(before, ledger); changed != (c.name != workitem.List) {
			t.Errorf("%s: changed is %t", c.name, changed)
		}
	}
}

func TestSummaryAndQuestion(t *testing.T) {
	complete, ask := harnesstool.Find("work_complete"), harnesstool.Find("ask_user")
	blob := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d"}}}
	for _, c := range []struct{ arguments, want *harnessv1.Content }{
		{content.Inline(`{"summary":"s"}`), content.Inline("s")}, {blob, blob}, {content.Inline(`{`), &harnessv1.Content{}},
	} {
		if got := complete.Summary(c.arguments); !proto.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.arguments, got, c.want)
		}
	}
	if o := complete.Run(nil, "{}"); o.Result != "Recorded." || o.IsError {
		t.Errorf("work_complete returns %+v", o)
	}
	if got := ask.Question(`{"question":"Which?"}`); got != "Which?" {
		t.Errorf("the question is %q", got)
	}
}

func TestReadArtifact(t *testing.T) {
	read := harnesstool.Find("read_artifact")
	a := read.Spec.GetAnnotations()
	if a.GetReads() || a.GetWrites() || a.GetExplores() || a.GetExecutes() || !a.GetIdempotent() || !a.GetParallelSafe() {
		t.Errorf("annotations %v", a)
	}
	if a.GetDurability() != harnessv1.Durability_DURABILITY_REPLAYABLE || !slices.Equal(a.GetPreservedFields(), []string{"ref"}) {
		t.Errorf("annotations %v", a)
	}
	if read.Unrestricted {
		t.Error("the policy of tools does not apply")
	}
	set, err := tool.NewSet(harnesstool.Specs(everything))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]*readback.Request{
		`{"ref":"m4"}`: {Ref: "m4"},
		`{"ref":"m4-m9","offset":100.0,"limit":50,"pattern":"(?i)x"}`: {Ref: "m4-m9", Offset: 100, Limit: 50, Pattern: "(?i)x"},
		`{"ref":"m4","offset":0,"limit":0,"pattern":""}`:              {Ref: "m4"},
		`{"ref":"anything","offset":1e9,"limit":1000000000}`:          {Ref: "anything", Offset: 1e9, Limit: 1e9},
		`{}`: nil, `{"ref":""}`: nil, `{"ref":7}`: nil, `{"ref":"m4","offset":-1}`: nil, `{"ref":"m4","limit":-1}`: nil, `{"ref":"m4","offset":1e300}`: nil, `{"ref":"m4","limit":null}`: nil, `{"ref":"m4","offset":1.5}`: nil,
		`{"ref":"m4","pattern":"` + strings.Repeat("x", 1001) + `"}`: nil, `{"ref":"m4","line":1}`: nil,
	} {
		switch err := set.Validate(harnesstool.ReadArtifact, arguments); {
		case want == nil && err == nil:
			t.Errorf("%s is valid", arguments)
		case want != nil && err != nil:
			t.Errorf("%s: %v", arguments, err)
		case want != nil && read.Messages(arguments) != *want:
			t.Errorf("%s: %+v", arguments, read.Messages(arguments))
		}
	}
}

func TestSchemas(t *testing.T) {
	set, err := tool.NewSet(harnesstool.Specs(everything))
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range set.Specs() {
		if !slices.Contains(items, spec.GetName()) {
			continue
		}
		a := spec.GetAnnotations()
		if a.GetIdempotent() || a.GetParallelSafe() || a.GetReads() || a.GetWrites() || a.GetExplores() || a.GetExecutes() {
			t.Errorf("%s: annotations %v", spec.GetName(), a)
		}
		durability := harnessv1.Durability_DURABILITY_ANCHORING
		if spec.GetName() == workitem.List {
			durability = harnessv1.Durability_DURABILITY_EPHEMERAL
		}
		if a.GetDurability() != durability {
			t.Errorf("%s has durability %s", spec.GetName(), a.GetDurability())
		}
	}
	for arguments, valid := range map[string]bool{
		`{"title":"a"}`: true, `{"title":"a","priority":"URGENT","role":"WHATEVER","notes":null,"id":null}`: true, `{"title":"a","id":"x"}`: true,
		`{}`: false, `{"title":""}`: false, `{"title":"a","colour":"red"}`: false, `{"title":7}`: false,
	} {
		if err := set.Validate(workitem.Add, arguments); (err == nil) != valid {
			t.Errorf("%s %s: %v", workitem.Add, arguments, err)
		}
	}
	for _, arguments := range []string{`{"id":"w1","status":"NEVER"}`, `{"id":"w1","notes":"n"}`, `{"id":"w1","status":"DONE","notes":""}`} {
		if err := set.Validate(workitem.Update, arguments); err != nil {
			t.Errorf("%s %s: %v", workitem.Update, arguments, err)
		}
	}
}
