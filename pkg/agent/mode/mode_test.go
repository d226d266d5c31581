package mode_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	host    = harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
	harness = harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
	client  = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
)

type notes = harnessv1.ToolAnnotations

func tool(name string, origin harnessv1.ToolOrigin, a *notes) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: name, Origin: origin, Annotations: a}
}

var custom = []*harnessv1.ModeSpec{
	{Name: "review", Description: "Read the change and\n  list its faults", ReadOnly: true},
	{Name: "docs", Description: "Write documentation.", Tools: []string{"read_file", "write_file"}},
	{Name: "audit", ReadOnly: true, Tools: []string{"read_file", "write_file", "ask_user"}},
	{Name: "free"},
}

func TestAllows(t *testing.T) {
	all := []string{"plan", "execute", "", "review", "docs", "audit", "free"}
	for _, c := range []struct {
		spec *harnessv1.ToolSpec
		in   []string
	}{
		{tool("read_file", host, &notes{Reads: true}), all},
		{tool("grep", host, &notes{Explores: true}), []string{"plan", "execute", "", "review", "free"}},
		{tool("write_file", host, &notes{Writes: true}), []string{"execute", "", "docs", "free"}},
		{tool("edit_file", host, &notes{Reads: true, Writes: true}), []string{"execute", "", "free"}},
		{tool("run_command", host, &notes{Explores: true, Executes: true}), []string{"execute", "", "free"}},
		{tool("unknown", host, nil), []string{"execute", "", "free"}},
		{tool("browse", client, &notes{Reads: true}), []string{"plan", "execute", "", "review", "free"}},
		{tool("order", client, nil), []string{"execute", "", "free"}},
		{tool("work_item_add", client, nil), []string{"execute", "", "free"}},
		{tool("ask_user", client, &notes{Writes: true}), []string{"execute", "", "free"}},
		{tool("work_item_add", harness, &notes{}), []string{"plan", "execute", "", "review", "free"}},
		{tool("work_item_list", harness, nil), []string{"plan", "execute", "", "review", "free"}},
		{tool("work_item_other", harness, nil), []string{"execute", "", "free"}},
		{tool("ask_user", harness, &notes{}), []string{"plan", "execute", "", "review", "audit", "free"}},
		{tool("work_complete", harness, nil), append(all, "unheard-of")},
		{tool("task_complete", harness, nil), append(all, "unheard-of")},
		{tool("read_artifact", harness, nil), append(all, "unheard-of")},
	} {
		for _, name := range append(all, "unheard-of") {
			want := slices.Contains(c.in, name)
			if got := mode.Allows(name, custom, c.spec); got != want {
				t.Errorf("%s of %s in mode %q: allowed %v", c.spec.GetName(), c.spec.GetOrigin(), name, got)
			}
		}
	}
}

func TestExists(t *testing.T) {
	if got := strings.Join(mode.Names(custom), " "); got != "plan execute review docs audit free" {
		t.Errorf("names %q", got)
	}
	for name, want := range map[string]bool{"plan": true, "execute": true, "": true, "review": true, "Plan": false, "other": false} {
		if mode.Exists(name, custom) != want {
			t.Errorf("%q is known: %v", name, !want)
		}
	}
	if mode.Exists("review", nil) {
		t.Error("a mode of another agent is known")
	}
}

func TestCheckNamesTheField(t *testing.T) {
	if err := mode.Check(custom); err != nil {
		t.Fatal(err)
	}
	named := func(names ...string) (modes []*harnessv1.ModeSpec) {
		for _, name := range names {
			modes = append(modes, &harnessv1.ModeSpec{Name: name})
		}
		return modes
	}
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprint("m", i))
	}
	if err := mode.Check(named(many[:16]...)); err != nil {
		t.Fatal(err)
	}
	tools := func(names ...string) []*harnessv1.ModeSpec { return []*harnessv1.ModeSpec{{Name: "a", Tools: names}} }
	for name, c := range map[string]struct {
		modes          []*harnessv1.ModeSpec
		field, message string
	}{
		"no name":          {named("a", ""), "modes[1].name", "is required"},
		"plan":             {named("plan"), "modes[0].name", "built-in mode"},
		"execute":          {named("a", "execute"), "modes[1].name", "built-in mode"},
		"twice":            {named("a", "b", "a"), "modes[2].name", "duplicate"},
		"capitals":         {named("Review"), "modes[0].name", "does not match"},
		"too long":         {named(strings.Repeat("x", 33)), "modes[0].name", "does not match"},
		"too many":         {named(many...), "modes", "17"},
		"long description": {[]*harnessv1.ModeSpec{{Name: "a", Description: strings.Repeat("x", 1025)}}, "modes[0].description", "1024"},
		"bad tool":         {tools("read", "a b"), "modes[0].tools[1]", "does not match"},
		"tool twice":       {tools("read", "read"), "modes[0].tools[1]", "duplicate"},
		"too many tools":   {tools(make([]string, 129)...), "modes[0].tools", "129"},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong *fault.FieldError
			if err := mode.Check(c.modes); !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if wrong.Field != c.field || !strings.Contains(wrong.Message, c.message) || !strings.HasPrefix(wrong.Error(), c.field+": ") {
				t.Fatalf("got %v", wrong)
			}
		})
	}
}

func TestDescribeListsTheModes(t *testing.T) {
	text := mode.Describe("", custom)
	for _, want := range []string{
		"\n- plan: ", "\n- execute: ", "starts in execute mode", "work_complete",
		"\n- review: Read the change and list its faults. Only tools that change nothing may be used.\n",
		"\n- docs: Write documentation. Only these tools may be used: read_file, write_file.\n",
		"\n- audit: Only these tools may be used, as far as they change nothing: read_file, write_file, ask_user.\n",
		"\n- free: All tools may be used.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if plan := mode.Describe("plan", nil); !strings.Contains(plan, "starts in plan mode") || strings.Contains(plan, "review") {
		t.Errorf("without custom modes:\n%s", plan)
	}
	if mode.Describe("", custom) != text {
		t.Error("the text differs the second time")
	}
}

func TestChangeAndBlockedTexts(t *testing.T) {
	changed := mode.ChangeText("", "docs", custom)
	for _, want := range []string{"now docs", "it was execute", "read_file, write_file"} {
		if !strings.Contains(changed, want) {
			t.Errorf("lacks %q: %s", want, changed)
		}
	}
	for _, name := range []string{"plan", "docs"} {
		blocked := mode.BlockedText(name, "write_file")
		for _, want := range []string{"write_file", name + " mode", "nothing was run", "work_complete"} {
			if !strings.Contains(blocked, want) {
				t.Errorf("lacks %q: %s", want, blocked)
			}
		}
	}
}

func TestTextsAreLimited(t *testing.T) {
	large := &harnessv1.ModeSpec{Name: strings.Repeat("m", 32), Description: strings.Repeat("ü ", 341)}
	for i := range 128 {
		large.Tools = append(large.Tools, fmt.Sprintf("%s%03d", strings.Repeat("t", 61), i))
	}
	modes := []*harnessv1.ModeSpec{large}
	if err := mode.Check(modes); err != nil {
		t.Fatal(err)
	}
	if changed := mode.ChangeText("", large.GetName(), modes); len(changed) > 2560 || !strings.Contains(changed, "and 108 more") {
		t.Errorf("%d bytes: %s", len(changed), changed)
	}
	if blocked := mode.BlockedText(large.GetName(), strings.Repeat("x", 9999)); len(blocked) > 512 {
		t.Errorf("%d bytes: %s", len(blocked), blocked)
	}
}
