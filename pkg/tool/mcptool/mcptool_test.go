package mcptool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

const ready = harnessv1.McpServerState_MCP_SERVER_STATE_READY

func definition(tool, description string) *harnessv1.McpDefinition {
	d := &harnessv1.McpDefinition{Tool: tool, Description: description, Schema: `{"type":"object","properties":{"a":{"type":"string"}}}`}
	d.Digest = mcptool.Digest(d)
	return d
}

func described(tools ...*harnessv1.McpDefinition) *harnessv1.DescribedServer {
	return &harnessv1.DescribedServer{Server: "s", State: ready, Listed: true, Tools: tools}
}

func server() *harnessv1.McpServer { return &harnessv1.McpServer{Name: "s", Command: "c"} }

// selected returns what a run has once its server was described.
func selected(of *harnessv1.McpServer, before *mcptool.Selection, finder bool, d *harnessv1.DescribedServer) *mcptool.Selection {
	seen := mcptool.Input{Servers: []*harnessv1.McpServer{of}, Described: []*harnessv1.DescribedServer{d}}
	if before != nil {
		seen.Before, seen.Tools = &harnessv1.McpState{Servers: before.Servers, Finder: finder}, before.Tools
	}
	return mcptool.Select(seen)
}

// shape describes tools and changes on one line.
func shape(o *mcptool.Selection) string {
	var parts []string
	for _, t := range o.Tools.GetTools() {
		text := t.GetSpec().GetName()
		if t.GetLate() {
			text += " late"
		}
		if t.GetGone() {
			text += " gone"
		}
		if t.GetChange() != nil {
			text += " changed"
		}
		parts = append(parts, text)
	}
	for _, c := range o.Changes {
		parts = append(parts, fmt.Sprintf("+%v ~%v -%v", c.GetAdded(), c.GetChanged(), c.GetRemoved()))
	}
	for _, l := range o.Servers[0].GetLeftOut() {
		parts = append(parts, "without "+l.GetTool()+": "+l.GetReason())
	}
	return strings.Join(parts, "; ")
}

func TestSelect(t *testing.T) {
	a, b := definition("a", "A"), definition("b", "B")
	other := definition("a", "Another A")
	start := selected(server(), nil, false, described(a, b))
	unapproved := described(other, b)
	unapproved.Approved = []*harnessv1.McpDefinition{a}
	proven := described(other, b)
	proven.ApprovedDigests = []string{other.GetDigest()}
	unproven := described(definition("a", "A third A"), b)
	unproven.ApprovedDigests = []string{other.GetDigest()}
	few := server()
	few.Tools = []string{"b*"}
	pinned := server()
	pinned.Pins = map[string]string{"a": a.GetDigest()}
	bad := &harnessv1.McpDefinition{Tool: "bad", Schema: `{"type":"string"}`}
	failed := &harnessv1.DescribedServer{Server: "s", State: harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, Message: "it has ended", Listed: true, Tools: []*harnessv1.McpDefinition{a, b}}
	starting := &harnessv1.DescribedServer{Server: "s", State: harnessv1.McpServerState_MCP_SERVER_STATE_STARTING}
	for name, c := range map[string]struct {
		got  *mcptool.Selection
		want string
	}{
		"at the start":                        {start, "mcp__s__a; mcp__s__b"},
		"nothing is different":                {selected(server(), start, false, described(a, b)), "mcp__s__a; mcp__s__b"},
		"changed between runs":                {selected(server(), nil, false, unapproved), "mcp__s__a changed; mcp__s__b; +[mcp__s__a mcp__s__b] ~[mcp__s__a] -[]"},
		"changed within the run":              {selected(server(), start, false, unapproved), "mcp__s__a changed; mcp__s__b; +[] ~[mcp__s__a] -[]"},
		"changed, on a host that knows none":  {selected(server(), start, false, described(other, b)), "mcp__s__a changed; mcp__s__b; +[] ~[mcp__s__a] -[]"},
		"changed and approved":                {selected(server(), start, false, proven), "mcp__s__a; mcp__s__b"},
		"proven, and another one approved":    {selected(server(), start, false, unproven), "mcp__s__a changed; mcp__s__b; +[] ~[mcp__s__a] -[]"},
		"gone":                                {selected(server(), start, false, described(a)), "mcp__s__a; mcp__s__b gone; +[] ~[] -[mcp__s__b]"},
		"gone, and back":                      {selected(server(), selected(server(), start, false, described(a)), false, described(a, b)), "mcp__s__a; mcp__s__b"},
		"new, without a search":               {selected(server(), selected(server(), nil, false, described(a)), false, described(a, b)), "mcp__s__a; without b: it came after the run began"},
		"new, with a search":                  {selected(server(), selected(server(), nil, false, described(a)), true, described(a, b)), "mcp__s__a; mcp__s__b late; +[mcp__s__b] ~[] -[]"},
		"only some":                           {selected(few, nil, false, described(a, b)), "mcp__s__b"},
		"pinned":                              {selected(pinned, nil, false, described(a, b)), "mcp__s__a; without b: it is not pinned: run harness mcp lock to accept it"},
		"pinned, and changed":                 {selected(pinned, nil, false, described(other)), "without a: its definition is not the pinned one: run harness mcp lock to accept it"},
		"a schema of no object":               {selected(server(), nil, false, described(a, bad)), "mcp__s__a; without bad: its arguments are no object"},
		"twice":                               {selected(server(), nil, false, described(a, a)), "mcp__s__a; without a: the server lists it twice"},
		"failed: its tools stay":              {selected(server(), start, false, failed), "mcp__s__a; mcp__s__b"},
		"starting again on another host":      {selected(server(), start, false, starting), "mcp__s__a; mcp__s__b"},
		"a change that is seen a second time": {selected(server(), selected(server(), start, false, unapproved), false, unapproved), "mcp__s__a changed; mcp__s__b"},
	} {
		if got := shape(c.got); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	changed := selected(server(), start, false, unapproved).Tools.GetTools()[0]
	if changed.GetSpec().GetDescription() != "A" || !strings.Contains(changed.GetChange().GetDifference(), "- A\n+ Another A") {
		t.Errorf("the model sees %q, the person %q", changed.GetSpec().GetDescription(), changed.GetChange().GetDifference())
	}
}

// TestAutonomousRunsKeepTheirTools: only a tool that had changed when the run got it is hidden, and
// it stays so once it is approved. So the requests begin as before.
func TestAutonomousRunsKeepTheirTools(t *testing.T) {
	a, other := definition("a", "A"), definition("a", "Another A")
	unapproved, proven := described(other), described(other)
	unapproved.Approved, proven.ApprovedDigests = []*harnessv1.McpDefinition{a}, []string{other.GetDigest()}
	for name, c := range map[string]struct {
		got  *mcptool.Selection
		want int
	}{
		"changed within the run":           {selected(server(), selected(server(), nil, false, described(a)), false, unapproved), 1},
		"changed before":                   {selected(server(), nil, false, unapproved), 0},
		"changed before, but now approved": {selected(server(), selected(server(), nil, false, unapproved), false, proven), 0},
	} {
		if shown, _ := mcptool.NewIndex(c.got.Tools).Shown(&harnessv1.McpState{}, true); len(shown) != c.want {
			t.Errorf("%s: %v", name, shown)
		}
		if shown, _ := mcptool.NewIndex(c.got.Tools).Shown(&harnessv1.McpState{}, false); len(shown) != 1 {
			t.Errorf("%s: a person is there: %v", name, shown)
		}
	}
}

// TestHintsCountOnlyIfTrusted: what a server says of its tools changes nothing else.
func TestHintsCountOnlyIfTrusted(t *testing.T) {
	d := &harnessv1.McpDefinition{Tool: "a", Schema: `{}`, Hints: `{"readOnlyHint":true,"idempotentHint":true}`}
	careful, err := mcptool.Spec(server(), d)
	if err != nil {
		t.Fatal(err)
	}
	if a := careful.GetAnnotations(); !a.GetWrites() || !a.GetAsks() || a.GetReads() || a.GetIdempotent() || a.GetParallelSafe() {
		t.Errorf("not trusted: %v", a)
	}
	trusting := server()
	trusting.Trust = mcptool.TrustHints
	trusted, _ := mcptool.Spec(trusting, d)
	if a := trusted.GetAnnotations(); a.GetWrites() || a.GetAsks() || !a.GetReads() || !a.GetIdempotent() || !a.GetParallelSafe() {
		t.Errorf("trusted: %v", a)
	}
	d.Hints = `{"openWorldHint":true}`
	for want, of := range map[harnessv1.Durability]*harnessv1.McpServer{
		harnessv1.Durability_DURABILITY_ANCHORING: server(), harnessv1.Durability_DURABILITY_NON_REPLAYABLE: trusting,
	} {
		if spec, _ := mcptool.Spec(of, d); spec.GetAnnotations().GetDurability() != want {
			t.Errorf("open world: %v, want %v", spec.GetAnnotations(), want)
		}
	}
	if a := trusted.GetAnnotations(); a.GetDurability() != harnessv1.Durability_DURABILITY_ANCHORING {
		t.Errorf("without the hint: %v", a)
	}
	own := server()
	own.Idempotent = []string{"a"}
	named, _ := mcptool.Spec(own, d)
	if a := named.GetAnnotations(); !a.GetIdempotent() || !a.GetAsks() {
		t.Errorf("named by the user: %v", a)
	}
}

// TestToolsOfServices: their names have no mcp__, so they never take the name of another tool, and
// their hints count only if they are trusted. That a service remembers keys counts in any case.
func TestToolsOfServices(t *testing.T) {
	d := &harnessv1.McpDefinition{Tool: "pay", Schema: `{}`, Hints: `{"readOnlyHint":true,"parallelSafeHint":true,"exploresHint":true,"durabilityHint":"DURABILITY_EPHEMERAL"}`}
	service := &harnessv1.McpServer{Name: "billing", Grpc: "127.0.0.1:1"}
	careful, err := mcptool.Spec(service, d)
	if err != nil || careful.GetName() != "billing__pay" {
		t.Fatalf("%v, %v", careful, err)
	}
	want := &harnessv1.ToolAnnotations{Writes: true, Asks: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING}
	if a := careful.GetAnnotations(); !proto.Equal(a, want) {
		t.Errorf("not trusted: %v", a)
	}
	trusted, _ := mcptool.Spec(&harnessv1.McpServer{Name: "billing", Host: true, Trust: mcptool.TrustHints}, d)
	want = &harnessv1.ToolAnnotations{Reads: true, Idempotent: true, ParallelSafe: true, Explores: true, Durability: harnessv1.Durability_DURABILITY_EPHEMERAL}
	if a := trusted.GetAnnotations(); !proto.Equal(a, want) || trusted.GetName() != "billing__pay" {
		t.Errorf("trusted: %v", trusted)
	}
	d.Hints = `{"remembersKeys":true}`
	remembers, _ := mcptool.Spec(service, d)
	if a := remembers.GetAnnotations(); !a.GetIdempotent() || !a.GetAsks() || !a.GetWrites() || !mcptool.Remembered(service, d) {
		t.Errorf("remembers keys: %v", a)
	}
	if other, _ := mcptool.Spec(server(), d); other.GetAnnotations().GetIdempotent() || mcptool.Remembered(server(), d) {
		t.Error("a server of the Model Context Protocol remembers keys")
	}
	taken := mcptool.Select(mcptool.Input{
		Servers:   []*harnessv1.McpServer{{Name: "a", Grpc: "x:1"}, {Name: "a__b", Grpc: "x:2"}},
		Described: []*harnessv1.DescribedServer{described(definition("b__c", "C"), definition("work_complete", "W")), described(definition("c", "C"))},
	})
	if got := shape(taken); got != "a__b__c; a__work_complete" || taken.Servers[1].GetLeftOut()[0].GetReason() != "another tool has the name a__b__c" {
		t.Errorf("%s, %v", got, taken.Servers[1])
	}
}

// TestToolsThatAreSearched: a server with load search has its tools found, however few they are,
// and they need no room in requests.
func TestToolsThatAreSearched(t *testing.T) {
	searching := server()
	searching.Load = harnessv1.McpLoad_MCP_LOAD_SEARCH
	got := selected(searching, nil, false, described(definition("a", "A")))
	if shape(got) != "mcp__s__a late" || got.Tokens != 0 || !mcptool.Searches(searching) || mcptool.Searches(server()) {
		t.Errorf("%s, %d tokens", shape(got), got.Tokens)
	}
}

// TestRules: the policy of a server is a rule for its tools alone.
func TestRules(t *testing.T) {
	asking := server()
	asking.Policy = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
	rules := mcptool.Rules([]*harnessv1.McpServer{server(), asking})
	if len(rules) != 1 || rules[0].GetName() != "mcp__s__*" || rules[0].GetPolicy() != asking.GetPolicy() || rules[0].GetReason() == "" {
		t.Errorf("%v", rules)
	}
}

func TestSetFinder(t *testing.T) {
	for _, c := range []struct {
		tokens, window uint32
		incomplete     bool
		hidden, finder bool
	}{{100, 1000, false, false, false}, {101, 1000, false, true, true}, {1, 1000, true, false, true}} {
		s := &harnessv1.McpState{}
		mcptool.SetFinder(s, c.tokens, c.incomplete, c.window)
		if s.GetHidden() != c.hidden || s.GetFinder() != c.finder {
			t.Errorf("%+v: %v", c, s)
		}
	}
}

func TestFind(t *testing.T) {
	var tools []*harnessv1.McpDefinition
	for i := range 500 {
		tools = append(tools, definition(fmt.Sprintf("widget_%03d", i), strings.Repeat("Turns a widget of the machine. ", 5)))
	}
	tools = append(tools, definition("createIssue", "Opens an issue."), definition("list_issues", "Lists what is open."))
	x := mcptool.NewIndex(selected(server(), nil, false, described(tools...)).Tools)
	all := func(*harnessv1.McpTool) bool { return true }
	found := x.Find("create an issue", nil, all)
	if !strings.Contains(found, "\nmcp__s__createIssue\nOpens an issue.\nschema: {") || strings.Index(found, "createIssue") > strings.Index(found, "list_issues") {
		t.Errorf("%s", found)
	}
	if found != x.Find("create an issue", nil, all) {
		t.Error("the same query has two answers")
	}
	for _, query := range []string{"", "widget", "turn the machine"} {
		if n := len(x.Find(query, nil, all)); n > 20_000 || n < 1000 {
			t.Errorf("%q: %d bytes", query, n)
		}
	}
	down := []*harnessv1.McpServerStatus{{Server: "other", State: harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN}}
	if text := x.Find("nothing like it zzz", down, all); !strings.Contains(text, "No tool fits") || !strings.Contains(text, "until a person has signed in") {
		t.Errorf("%s", text)
	}
	if text := x.Find("issue", nil, func(t *harnessv1.McpTool) bool { return t.GetDefinition().GetTool() != "createIssue" }); strings.Contains(text, "createIssue") {
		t.Errorf("a tool that the mode does not allow is found: %s", text)
	}
}

// TestAsWritten: the model reads its calls of call_tool as it wrote them.
func TestAsWritten(t *testing.T) {
	messages := []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("go")},
		{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{
			{Id: "1", Name: "mcp__s__a", Arguments: content.Inline(`{"a": "x"}`), ByCallTool: true}, {Id: "2", Name: "read_file", Arguments: content.Inline(`{}`)},
		}},
		{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "1", ToolName: "mcp__s__a", Content: content.Inline("r")},
		{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "2", ToolName: "read_file", Content: content.Inline("r")},
	}
	before := make([]*harnessv1.Message, len(messages))
	for i, m := range messages {
		before[i] = proto.CloneOf(m)
	}
	got, err := mcptool.AsWritten(messages, "call_tool")
	if err != nil {
		t.Fatal(err)
	}
	if c := got[1].GetToolCalls()[0]; c.GetName() != "call_tool" || c.GetArguments().GetInline() != `{"name":"mcp__s__a","arguments":{"a": "x"}}` {
		t.Errorf("%v", c)
	}
	if got[2].GetToolName() != "call_tool" || got[3].GetToolName() != "read_file" || got[0] != messages[0] {
		t.Errorf("%v", got)
	}
	if !slices.EqualFunc(before, messages, func(a, b *harnessv1.Message) bool { return proto.Equal(a, b) }) {
		t.Error("the stored messages were changed")
	}
	if same, _ := mcptool.AsWritten(messages[3:], "call_tool"); &same[0] != &messages[3:][0] {
		t.Error("messages without such calls were copied")
	}
}
