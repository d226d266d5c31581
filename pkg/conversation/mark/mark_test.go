package mark_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	ephemeral     = harnessv1.Durability_DURABILITY_EPHEMERAL
	anchoring     = harnessv1.Durability_DURABILITY_ANCHORING
	replayable    = harnessv1.Durability_DURABILITY_REPLAYABLE
	nonReplayable = harnessv1.Durability_DURABILITY_NON_REPLAYABLE
)

func compacting(overrides ...*harnessv1.ToolDurability) *harnessv1.LoopConfig {
	return &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{Compaction: proto.Bool(true), Durability: overrides}}
}

func spec(a *harnessv1.ToolAnnotations) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: "tool", Annotations: a}
}

// fields returns preserved fields as text.
func fields(all []*harnessv1.PreservedField) string {
	var parts []string
	for _, f := range all {
		parts = append(parts, f.GetName()+"="+f.GetValue())
	}
	return strings.Join(parts, " ")
}

// marked returns the result of a call as it is marked.
func marked(c *harnessv1.LoopConfig, s *harnessv1.ToolSpec, arguments, text string, failed bool, exitCode *int32) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, IsError: failed, Content: content.Inline(text)}
	mark.Result(m, mark.OfCall(c, "tool", s, arguments), text, exitCode)
	return m
}

func TestDurability(t *testing.T) {
	override := compacting(
		&harnessv1.ToolDurability{Tool: "other", Durability: nonReplayable, ExternalizeTokens: proto.Uint32(7)},
		&harnessv1.ToolDurability{Tool: "tool", Durability: ephemeral, ExternalizeTokens: proto.Uint32(500)},
	)
	for name, c := range map[string]struct {
		config      *harnessv1.LoopConfig
		spec        *harnessv1.ToolSpec
		want        harnessv1.Durability
		externalize uint32
	}{
		"an unknown tool":             {compacting(), nil, anchoring, 0},
		"a tool that declares none":   {compacting(), spec(nil), anchoring, 0},
		"a tool that declares one":    {compacting(), spec(&harnessv1.ToolAnnotations{Durability: replayable}), replayable, 0},
		"a tool that is overridden":   {override, spec(&harnessv1.ToolAnnotations{Durability: replayable}), ephemeral, 500},
		"an unknown tool, overridden": {override, nil, ephemeral, 500},
		"an override of the fields alone": {
			compacting(&harnessv1.ToolDurability{Tool: "tool", PreservedFields: []string{"a"}}), spec(&harnessv1.ToolAnnotations{Durability: replayable}), replayable, 0,
		},
	} {
		m := marked(c.config, c.spec, "{}", "", false, nil)
		if m.GetDurability() != c.want || m.GetExternalizeTokens() != c.externalize {
			t.Errorf("%s: %s from %d tokens, want %s from %d", name, m.GetDurability(), m.GetExternalizeTokens(), c.want, c.externalize)
		}
	}
}

// TestUsualTools: tools of known names need declare nothing. What they declare, and the
// configuration of the run, precede.
func TestUsualTools(t *testing.T) {
	short := compacting()
	short.Context.ExternalizeTokens = proto.Uint32(400)
	configured := compacting(&harnessv1.ToolDurability{Tool: "web_search", Durability: ephemeral, ExternalizeTokens: proto.Uint32(900)})
	declared := &harnessv1.ToolSpec{Annotations: &harnessv1.ToolAnnotations{Durability: replayable}}
	for name, c := range map[string]struct {
		config      *harnessv1.LoopConfig
		tool        string
		spec        *harnessv1.ToolSpec
		want        harnessv1.Durability
		externalize uint32
		fields      string
	}{
		"a search":                             {compacting(), "web_search", nil, nonReplayable, 500, ""},
		"a search that declares more":          {compacting(), "web_search", declared, replayable, 500, ""},
		"a search that is configured":          {configured, "web_search", nil, ephemeral, 900, ""},
		"a search with override of durability": {compacting(&harnessv1.ToolDurability{Tool: "web_search", Durability: ephemeral}), "web_search", nil, ephemeral, 500, ""},
		"a search in a run that shows less":    {short, "web_search", nil, nonReplayable, 0, ""},
		"a fetched page":                       {compacting(), "web_fetch", nil, nonReplayable, 0, "url=http://a"},
		"a request":                            {compacting(), "http_request", nil, nonReplayable, 0, "status_code=404 url=http://a"},
		"a request that declares more":         {compacting(), "http_request", declared, replayable, 0, ""},
		"a calculation":                        {compacting(), "calculate", nil, replayable, 0, ""},
		"a tool of a server":                   {compacting(), "mcp__a__web_search", nil, anchoring, 0, ""},
	} {
		m := &harnessv1.Message{}
		mark.Result(m, mark.OfCall(c.config, c.tool, c.spec, `{"url":"http://a"}`), "status_code: 404", nil)
		if m.GetDurability() != c.want || m.GetExternalizeTokens() != c.externalize || fields(m.GetPreserved()) != c.fields {
			t.Errorf("%s: %s from %d tokens with %q, want %s from %d with %q",
				name, m.GetDurability(), m.GetExternalizeTokens(), fields(m.GetPreserved()), c.want, c.externalize, c.fields)
		}
	}
}

func TestNothingIsMarkedWithoutCompaction(t *testing.T) {
	for name, c := range map[string]*harnessv1.LoopConfig{
		"none": nil, "unset": {}, "off": {Context: &harnessv1.ContextConfig{Compaction: proto.Bool(false), Durability: []*harnessv1.ToolDurability{{Tool: "tool", Durability: ephemeral}}}},
	} {
		s := spec(&harnessv1.ToolAnnotations{Reads: true, Durability: replayable, PreservedFields: []string{"path"}})
		m := marked(c, s, `{"path":"PLAN.md"}`, "text", false, nil)
		if want := (&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, Content: content.Inline("text")}); mark.On(c) || !proto.Equal(m, want) || mark.Pending(mark.OfCall(c, "tool", s, "{}")) != nil {
			t.Errorf("%s: %v", name, m)
		}
	}
}

func TestPreservedFields(t *testing.T) {
	long := strings.Repeat("é", 200)
	for name, c := range map[string]struct {
		names     []string
		arguments string
		text      string
		failed    bool
		exitCode  *int32
		want      string
	}{
		"of arguments":                {[]string{"path", "n", "list"}, `{"n":1.50,"path":"a.txt","list":[1, "x"],"more":0}`, "", false, nil, `path=a.txt n=1.50 list=[1,"x"]`},
		"arguments precede":           {[]string{"id"}, `{"id":"w1"}`, `{"id":"w2"}`, false, nil, "id=w1"},
		"of a JSON result":            {[]string{"status_code", "id", "ok"}, `{"id":""}`, "\n {\"id\": \"w2\", \"status_code\": 404, \"ok\":true}", false, nil, "status_code=404 id=w2 ok=true"},
		"null and nothing":            {[]string{"a", "b", "c"}, `{"a":null,"b":""}`, `{"c":null}`, false, nil, ""},
		"of a result that is cut off": {[]string{"id", "more"}, `{}`, `{"id":"w2","text":"and so`, false, nil, "id=w2"},
		"of lines":                    {[]string{"status_code", "url"}, `{}`, "Done.\nmy status_code: 1\nstatus_code:  200 \nurl: x\nurl: y", false, nil, "status_code=200 url=x"},
		"of the first line":           {[]string{"status_code"}, `{}`, "status_code: 200", false, nil, "status_code=200"},
		"not within a line":           {[]string{"code"}, `{}`, "status_code:code: 200\ncode", false, nil, ""},
		"of lines in braces":          {[]string{"code"}, `{}`, "{\ncode: 200\n}", false, nil, "code=200"},
		"the exit code":               {[]string{"exit_code", "command", "more"}, `{"command":"make\n test"}`, "[exit code 2]", true, proto.Int32(2), "exit_code=2 command=make test"},
		"no exit code":                {[]string{"exit_code", "command"}, `{"command":"make"}`, "", true, nil, "command=make"},
		"success":                     {[]string{"path", "success"}, `{"path":"a"}`, "Wrote a.", false, nil, "path=a success=true"},
		"no success":                  {[]string{"path", "success"}, `{"path":"a"}`, "No such file.", true, nil, "path=a success=false"},
		"a success of the tool's own": {[]string{"success"}, `{}`, `{"success":"in part"}`, false, nil, "success=in part"},
		"long values":                 {[]string{"a", "b"}, `{"a":"` + long + `"}`, "b: " + long, false, nil, "a=" + long[:156] + "… b=" + long[:156] + "…"},
		"too many, too long a name":   {[]string{"", strings.Repeat("n", 65), "a", "b", "c", "d", "e", "f", "g", "h", "i"}, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`, "", false, nil, "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8"},
		"no object":                   {[]string{"path"}, `["path","x"]`, `[{"path":"y"}]`, false, nil, ""},
		"no JSON":                     {[]string{"path"}, `path`, `path`, false, nil, ""},
	} {
		m := marked(compacting(), spec(&harnessv1.ToolAnnotations{PreservedFields: c.names}), c.arguments, c.text, c.failed, c.exitCode)
		if got := fields(m.GetPreserved()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		for _, f := range m.GetPreserved() {
			if len(f.GetValue()) > 160 {
				t.Errorf("%s: %d bytes of %s", name, len(f.GetValue()), f.GetName())
			}
		}
	}
	override := compacting(&harnessv1.ToolDurability{Tool: "tool", PreservedFields: []string{"b"}})
	if got := fields(marked(override, spec(&harnessv1.ToolAnnotations{PreservedFields: []string{"a"}}), `{"a":1,"b":2}`, "", false, nil).GetPreserved()); got != "b=2" {
		t.Errorf("with an override: %s", got)
	}
}

func TestReadsOfPlansAreKept(t *testing.T) {
	reads := &harnessv1.ToolAnnotations{Reads: true}
	many := &harnessv1.ToolAnnotations{Reads: true, PreservedFields: strings.Split("a b c d e f g path", " ")}
	for name, c := range map[string]struct {
		annotations *harnessv1.ToolAnnotations
		arguments   string
		failed      bool
		kept        bool
		want        string
	}{
		"a plan":                    {reads, `{"path":"PLAN.md"}`, false, true, "path=PLAN.md"},
		"of any folder":             {reads, `{"limit":5,"path":"./docs//Plan.MD"}`, false, true, "path=docs/Plan.MD"},
		"by another name":           {reads, `{"a":"x","file":"/w/plan.md"}`, false, true, "path=/w/plan.md"},
		"path precedes":             {reads, `{"a":"a/PLAN.md","path":"b/PLAN.md"}`, false, true, "path=b/PLAN.md"},
		"another file":              {reads, `{"path":"PLAN.md.txt"}`, false, false, ""},
		"a text about it":           {reads, `{"text":"look at PLAN.md"}`, false, false, ""},
		"not a read":                {&harnessv1.ToolAnnotations{Writes: true}, `{"path":"PLAN.md"}`, false, false, ""},
		"a search":                  {&harnessv1.ToolAnnotations{Reads: true, Explores: true}, `{"path":"PLAN.md"}`, false, false, ""},
		"a read that failed":        {reads, `{"path":"PLAN.md"}`, true, false, "path=PLAN.md"},
		"no arguments":              {reads, `PLAN.md`, false, false, ""},
		"the path of other fields":  {&harnessv1.ToolAnnotations{Reads: true, PreservedFields: []string{"n", "path"}}, `{"path":"./PLAN.md","n":1}`, false, true, "path=PLAN.md n=1"},
		"the path among the fields": {many, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"path":"PLAN.md"}`, false, true, "path=PLAN.md a=1 b=1 c=1 d=1 e=1 f=1 g=1"},
	} {
		m := marked(compacting(), spec(c.annotations), c.arguments, "1. Look.", c.failed, nil)
		content := harnessv1.KeptContent_KEPT_CONTENT_UNSPECIFIED
		if c.kept {
			content = harnessv1.KeptContent_KEPT_CONTENT_PLAN_FILE
		}
		if m.GetKept() != c.kept || m.GetKeptContent() != content || fields(m.GetPreserved()) != c.want {
			t.Errorf("%s: kept %t as %s with %s, want %t with %s", name, m.GetKept(), m.GetKeptContent(), fields(m.GetPreserved()), c.kept, c.want)
		}
	}
	many.PreservedFields = append(many.PreservedFields[:7], "h", "i")
	m := marked(compacting(), spec(many), `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"path":"PLAN.md"}`, "", false, nil)
	if got := fields(m.GetPreserved()); got != "path=PLAN.md a=1 b=1 c=1 d=1 e=1 f=1 g=1" {
		t.Errorf("of many fields: %s", got)
	}
}

// TestWaitingCallsHaveFewBytes: the state holds the marks of many calls.
func TestWaitingCallsHaveFewBytes(t *testing.T) {
	value := strings.Repeat("v", 100)
	arguments := fmt.Sprintf(`{"a":"%s","b":"%s","c":"%s","d":"short"}`, value, value, value)
	m := mark.OfCall(compacting(), "tool", spec(&harnessv1.ToolAnnotations{PreservedFields: []string{"a", "b", "c", "d", "e"}}), arguments)
	before := proto.CloneOf(m)
	if got, want := fields(mark.Pending(m).GetPreserved()), "a="+value+" b="+value+" d=short e="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !proto.Equal(m, before) || mark.Pending(m).GetDurability() != m.GetDurability() {
		t.Errorf("the marks have become %v", m)
	}
}

func TestLongResultsAreSearchedInPart(t *testing.T) {
	s := spec(&harnessv1.ToolAnnotations{PreservedFields: []string{"id"}})
	for before, want := range map[int]string{1000: "id=x", 300 << 10: ""} {
		if got := fields(marked(compacting(), s, "{}", strings.Repeat("é\n", before/3)+"id: x", false, nil).GetPreserved()); got != want {
			t.Errorf("after %d bytes: %q, want %q", before, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
	mark.Completion(m)
	if !m.GetKept() || m.GetKeptContent() != harnessv1.KeptContent_KEPT_CONTENT_COMPLETION {
		t.Errorf("marked %v", m)
	}
}
