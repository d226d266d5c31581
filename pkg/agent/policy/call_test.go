package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	unset = harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED
	allow = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
	ask   = harnessv1.ToolDecision_TOOL_DECISION_ASK
	deny  = harnessv1.ToolDecision_TOOL_DECISION_DENY
)

var (
	runs   = &harnessv1.ToolSpec{Name: "run_command", Annotations: &harnessv1.ToolAnnotations{Executes: true}}
	writes = &harnessv1.ToolSpec{Name: "write_file", Annotations: &harnessv1.ToolAnnotations{Writes: true}}
	fetch  = &harnessv1.ToolSpec{Name: "fetch"}
	visit  = &harnessv1.ToolSpec{Name: "web_fetch", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}
	send   = &harnessv1.ToolSpec{Name: "http_request", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}
)

func when(name string, policy harnessv1.ToolDecision, when string) *harnessv1.ToolRule {
	return &harnessv1.ToolRule{Name: name, Policy: policy, When: when}
}

func pattern(name string, policy harnessv1.ToolDecision, pattern string) *harnessv1.ToolRule {
	return &harnessv1.ToolRule{Name: name, Policy: policy, Pattern: pattern}
}

func simple(name string, policy harnessv1.ToolDecision) *harnessv1.ToolRule {
	return &harnessv1.ToolRule{Name: name, Policy: policy}
}

func TestPolicyDecidesACallByItsArguments(t *testing.T) {
	type rules = []*harnessv1.ToolRule
	rm := when("run_command", deny, `args.command.contains("rm -rf")`)
	secrets := pattern("*", deny, `^secrets/`)
	docs := pattern("write_file", allow, `^docs/`)
	for name, c := range map[string]struct {
		rules     rules
		spec      *harnessv1.ToolSpec
		arguments string
		granted   []string
		yolo      bool
		want      harnessv1.ToolDecision
	}{
		"the condition holds":                         {rules{rm}, runs, `{"command":"rm -rf /"}`, nil, false, deny},
		"the condition does not hold":                 {rules{rm}, runs, `{"command":"ls"}`, nil, false, ask},
		"an argument is not there":                    {rules{rm}, runs, `{}`, nil, false, ask},
		"no arguments at all":                         {rules{when("*", deny, `size(args) == 0`)}, fetch, ``, nil, false, deny},
		"for another tool":                            {rules{rm}, fetch, `{"command":"rm -rf /"}`, nil, false, allow},
		"the condition sees the tool":                 {rules{when("*", deny, `tool == "fetch"`)}, fetch, `{}`, nil, false, deny},
		"numbers":                                     {rules{when("fetch", ask, `args.pages > 10`)}, fetch, `{"pages":11}`, nil, false, ask},
		"numbers with a fraction":                     {rules{when("fetch", ask, `args.pages > 10`)}, fetch, `{"pages":9.5}`, nil, false, allow},
		"a conditional denial stands":                 {rules{rm, simple("*", allow)}, runs, `{"command":"rm -rf /"}`, nil, false, deny},
		"a plain denial does not":                     {rules{simple("*", deny), simple("run_command", allow)}, runs, `{"command":"ls"}`, nil, false, allow},
		"a plain denial is narrowed":                  {rules{simple("*", deny), docs}, writes, `{"path":"docs/a.md"}`, nil, false, allow},
		"a conditional question is lifted":            {rules{pattern("run_command", ask, "make"), simple("run_command", allow)}, runs, `{"command":"make"}`, nil, false, allow},
		"the last that fits decides":                  {rules{simple("run_command", ask), pattern("run_command", allow, `^go test`)}, runs, `{"command":"go test ./..."}`, nil, false, allow},
		"what does not fit is passed over":            {rules{simple("run_command", ask), pattern("run_command", allow, `^go test`)}, runs, `{"command":"go build"}`, nil, false, ask},
		"a rule without policy is the default":        {rules{simple("*", deny), pattern("run_command", unset, `^ls`)}, runs, `{"command":"ls"}`, nil, false, ask},
		"a denial stands over a rule without policy":  {rules{rm, simple("*", unset)}, runs, `{"command":"rm -rf /"}`, nil, false, deny},
		"both have to fit":                            {rules{{Name: "*", Policy: deny, When: `tool == "run_command"`, Pattern: "^rm"}}, runs, `{"command":"ls"}`, nil, false, ask},
		"both fit":                                    {rules{{Name: "*", Policy: deny, When: `tool == "run_command"`, Pattern: "^rm"}}, runs, `{"command":"rm a"}`, nil, false, deny},
		"granted":                                     {rules{when("fetch", ask, "true")}, fetch, `{}`, []string{"fetch"}, false, allow},
		"a grant lifts no denial":                     {rules{rm}, runs, `{"command":"rm -rf /"}`, []string{"run_command"}, false, deny},
		"yolo":                                        {rules{when("fetch", ask, "true")}, fetch, `{}`, nil, true, allow},
		"yolo lifts no denial":                        {rules{rm}, runs, `{"command":"rm -rf /"}`, nil, true, deny},
		"a denial that cannot be evaluated stands":    {rules{rm, simple("*", allow)}, runs, `{"command":["rm","-rf"]}`, nil, true, deny},
		"a question that cannot be evaluated is put":  {rules{when("fetch", ask, `args.pages > 10`)}, fetch, `{"pages":"many"}`, nil, false, ask},
		"an allowance that cannot be evaluated is no": {rules{simple("*", deny), when("fetch", allow, `args.pages < 10`)}, fetch, `{"pages":"many"}`, nil, false, deny},
		"arguments that are no object":                {rules{when("fetch", deny, `args.pages > 10`)}, fetch, `[1`, nil, false, deny},
		"allowed arguments that are no object":        {rules{simple("*", deny), when("fetch", allow, `true`)}, fetch, `[1]`, nil, false, deny},

		"a path":                                 {rules{secrets}, writes, `{"path":"secrets/key","content":"x"}`, nil, false, deny},
		"another path":                           {rules{secrets}, writes, `{"path":"public/key","content":"secrets/"}`, nil, false, allow},
		"a path in another spelling":             {rules{secrets}, writes, `{"path":"./a/../secrets/key"}`, nil, false, deny},
		"a path as it is written":                {rules{pattern("*", deny, `\.\.`)}, writes, `{"path":"a/../b"}`, nil, false, deny},
		"an absolute path":                       {rules{secrets}, writes, `{"path":"/home/me/work/secrets/key"}`, nil, false, deny},
		"another absolute path":                  {rules{secrets}, writes, `{"path":"/home/me/nosecrets/key"}`, nil, false, allow},
		"a deep absolute path":                   {rules{secrets}, writes, `{"path":"` + strings.Repeat("/a", 65) + `"}`, nil, false, deny},
		"a path that is too long":                {rules{secrets}, writes, `{"path":"` + strings.Repeat("a", 4097) + `"}`, nil, false, deny},
		"an allowed path":                        {rules{simple("*", ask), docs}, writes, `{"path":"docs/a.md"}`, nil, false, allow},
		"an allowed path that leads away":        {rules{simple("*", ask), docs}, writes, `{"path":"docs/../main.go"}`, nil, false, ask},
		"an allowed absolute path":               {rules{simple("*", ask), docs}, writes, `{"path":"/work/docs/a.md"}`, nil, false, ask},
		"an allowed path that is too long":       {rules{simple("*", ask), docs}, writes, `{"path":"docs/` + strings.Repeat("a", 4097) + `"}`, nil, false, ask},
		"a command that names a path":            {rules{pattern("*", deny, `^secrets`)}, runs, `{"command":"ls","path":"secrets/"}`, nil, false, ask},
		"a command of a tool that runs none":     {rules{pattern("*", deny, `^rm`)}, fetch, `{"command":"rm"}`, nil, false, allow},
		"arguments as JSON":                      {rules{pattern("fetch", deny, `"force":true`)}, fetch, "{ \"force\" : true, \"a\": 1 }", nil, false, deny},
		"arguments as JSON are sorted":           {rules{pattern("fetch", deny, `^{"a":1,"b":"<&>"}$`)}, fetch, `{"b":"\u003c\u0026\u003e","a":1}`, nil, false, deny},
		"a host":                                 {rules{{Name: "*", Policy: deny, Host: "a.example"}}, visit, `{"url":"https://A.example./x"}`, nil, true, deny},
		"another host":                           {rules{{Name: "*", Policy: deny, Host: "a.example"}}, visit, `{"url":"https://b.example"}`, nil, false, allow},
		"a host at another port":                 {rules{{Name: "*", Policy: deny, Host: "a.example"}}, visit, `{"url":"https://a.example:444"}`, nil, false, allow},
		"a host of a url that cannot be read":    {rules{{Name: "*", Policy: deny, Host: "a.example"}}, visit, `{"url":"https://a b"}`, nil, false, deny},
		"an allowed host that cannot be read":    {rules{simple("*", deny), {Name: "*", Policy: allow, Host: "a.example"}}, visit, `{"url":"https://a b"}`, nil, false, deny},
		"a host of a call without url":           {rules{{Name: "*", Policy: deny, Host: "a.example"}}, runs, `{"command":"ls"}`, nil, false, ask},
		"a path that is no text":                 {rules{pattern("*", deny, `"path":7`)}, writes, `{"path":7}`, nil, false, deny},
		"a pattern over arguments that are none": {rules{pattern("fetch", deny, `force`)}, fetch, `{"force":`, nil, false, deny},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			if got, why := p.Decide(c.spec, c.arguments, Exemptions{Granted: c.granted, Yolo: c.yolo}); got != c.want || why == "" {
				t.Fatalf("got %v (%q), want %v", got, why, c.want)
			}
		})
	}
}

func TestDecideReturnsTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		rule      *harnessv1.ToolRule
		arguments string
		want      string
	}{
		"a reason of its own":     {&harnessv1.ToolRule{Name: "*", Policy: deny, Pattern: "rm", Reason: "not here"}, `{"command":"rm"}`, "not here"},
		"a pattern":               {pattern("run_command", deny, "^rm"), `{"command":"rm"}`, `"^rm"`},
		"a plain rule":            {simple("*", deny), `{"command":"rm"}`, `"*"`},
		"what went wrong":         {when("*", deny, `args.command.contains("rm")`), `{"command":7}`, "cannot be evaluated"},
		"a reason and what's bad": {&harnessv1.ToolRule{Name: "*", Policy: deny, When: `args.command.contains("rm")`, Reason: "not here"}, `{"command":7}`, "not here ("},
	} {
		p, err := Compile([]*harnessv1.ToolRule{c.rule})
		if err != nil {
			t.Fatal(err)
		}
		if got, why := p.Decide(runs, c.arguments, Exemptions{}); got != deny || !strings.Contains(why, c.want) {
			t.Errorf("%s: %v %q lacks %q", name, got, why, c.want)
		}
	}
	p, err := Compile([]*harnessv1.ToolRule{{Name: "*", Policy: ask, Reason: "costs money"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, why := p.Decide(fetch, "{}", Exemptions{}); got != ask || why != "costs money" {
		t.Errorf("%v %q", got, why)
	}
	var none *Policy
	if got, _ := none.Decide(runs, `{}`, Exemptions{}); got != ask {
		t.Fatalf("no policy at all: %v", got)
	}
}

// TestHostsAskOnce: a grant of a host holds for reading with both tools, and for nothing that
// is approved each time.
func TestHostsAskOnce(t *testing.T) {
	host := func(name, text string) []*harnessv1.ToolRule {
		return []*harnessv1.ToolRule{{Name: name, Policy: allow, Host: text}}
	}
	const page = `{"url":"https://a.example/x"}`
	for name, c := range map[string]struct {
		rules []*harnessv1.ToolRule
		spec  *harnessv1.ToolSpec
		e     Exemptions
		want  harnessv1.ToolDecision
	}{
		"a host that is not known":       {nil, visit, Exemptions{Outside: "new"}, ask},
		"one that the file allows":       {nil, visit, Exemptions{}, allow},
		"granted":                        {nil, visit, Exemptions{Outside: "new", Rules: host("web_fetch", "a.example")}, allow},
		"granted to the other tool":      {nil, send, Exemptions{Outside: "new", Rules: host("web_fetch", "a.example")}, allow},
		"another host is granted":        {nil, visit, Exemptions{Outside: "new", Rules: host("web_fetch", "b.example")}, ask},
		"granted to a tool of commands":  {nil, visit, Exemptions{Outside: "new", Rules: host("run_command", "a.example")}, ask},
		"the tool is granted":            {nil, visit, Exemptions{Outside: "new", Granted: []string{"web_fetch"}}, allow},
		"each asks":                      {nil, send, Exemptions{Outside: "writes", Each: true, Rules: host("http_request", "a.example"), Granted: []string{"http_request"}}, ask},
		"each asks, also by a rule":      {[]*harnessv1.ToolRule{simple("*", ask)}, send, Exemptions{Outside: "writes", Each: true, Granted: []string{"http_request"}}, ask},
		"each asks, but for a rule":      {host("http_request", "a.example"), send, Exemptions{Outside: "writes", Each: true}, allow},
		"each asks, but for a wide rule": {nil, send, Exemptions{Outside: "writes", Each: true, Yolo: true}, allow},
		"denied":                         {[]*harnessv1.ToolRule{{Name: "*", Policy: deny, Host: "a.example"}}, visit, Exemptions{Yolo: true, Rules: host("web_fetch", "a.example")}, deny},
	} {
		p, err := Compile(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := p.Decide(c.spec, page, c.e); got != c.want {
			t.Errorf("%s: %v (%s), want %v", name, got, why, c.want)
		}
	}
	proposed := Propose(visit, `{"url":"https://A.example:8443/x"}`, "")
	if len(proposed) != 1 || proposed[0].GetHost() != "a.example:8443" {
		t.Errorf("proposed %v", proposed)
	}
	if err := CheckGrant(host("web_fetch", "b.example"), nil, visit, page, ""); err == nil {
		t.Error("a rule for another host is accepted")
	}
	if err := CheckGrant(host("fetch", "a.example"), nil, fetch, page, ""); err == nil {
		t.Error("a host for a tool that is no web tool is accepted")
	}
}

// TestConfinedCommandsDoNotAsk unless a rule does.
func TestConfinedCommandsDoNotAsk(t *testing.T) {
	confined := Exemptions{Confined: true}
	for _, c := range []struct {
		rules []*harnessv1.ToolRule
		want  harnessv1.ToolDecision
	}{
		{nil, allow},
		{[]*harnessv1.ToolRule{simple("run_command", unset)}, allow},
		{[]*harnessv1.ToolRule{simple("run_command", ask)}, ask},
		{[]*harnessv1.ToolRule{pattern("run_command", deny, "^rm")}, deny},
	} {
		p, err := Compile(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Decide(runs, `{"command":"rm"}`, confined); got != c.want {
			t.Errorf("%v: %v, want %v", c.rules, got, c.want)
		}
	}
}

func TestCompileReportsThePlaceInAPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		rule         *harnessv1.ToolRule
		field        string
		message      string
		line, column int
	}{
		"no name":          {simple("", allow), "tools[1].name", "invalid tool name", 0, 0},
		"bad name":         {simple("a b", allow), "tools[1].name", "invalid tool name", 0, 0},
		"no policy":        {simple("*", 9), "tools[1].policy", "9", 0, 0},
		"unknown variable": {when("*", deny, "tool == 'x' &&\n arg.x == 1"), "tools[1].when", "arg", 2, 2},
		"no bool":          {when("*", deny, "tool"), "tools[1].when", "string", 1, 1},
		"blank condition":  {when("*", deny, "  "), "tools[1].when", "empty", 0, 0},
		"bad pattern":      {pattern("*", deny, "a(b"), "tools[1].pattern", "missing closing )", 0, 0},
		"no RE2":           {pattern("*", deny, `(?=a)`), "tools[1].pattern", "RE2", 0, 0},
		"long pattern":     {pattern("*", deny, strings.Repeat("a", 4097)), "tools[1].pattern", "4096", 0, 0},
		"long reason":      {&harnessv1.ToolRule{Name: "*", Reason: strings.Repeat("a", 1025)}, "tools[1].reason", "1024", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]*harnessv1.ToolRule{simple("*", allow), c.rule})
			var wrong *fault.FieldError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if wrong.Field != c.field || wrong.Line != c.line || wrong.Column != c.column || !strings.Contains(wrong.Message, c.message) || strings.Contains(wrong.Error(), "\n") {
				t.Fatalf("got %s at %d:%d: %s", wrong.Field, wrong.Line, wrong.Column, wrong.Message)
			}
		})
	}
}

// TestPolicyFollowsItsDefinition compares Decide with a literal implementation of the
// definition. conditions and patterns list what matches the call.
func TestPolicyFollowsItsDefinition(t *testing.T) {
	conditions := map[string]bool{"": true, `args.x == 1`: true, `args.x == 2`: false, `args.y == 1`: false}
	patterns := map[string]bool{"": true, `"x":1`: true, `"x":2`: false}
	rapid.Check(t, func(t *rapid.T) {
		var rules []*harnessv1.ToolRule
		want, denied := unset, false
		for range rapid.IntRange(0, 5).Draw(t, "rules") {
			r := &harnessv1.ToolRule{
				Name:    rapid.SampledFrom([]string{"*", "fetch", "other"}).Draw(t, "name"),
				Policy:  rapid.SampledFrom([]harnessv1.ToolDecision{unset, allow, ask, deny}).Draw(t, "policy"),
				When:    rapid.SampledFrom([]string{"", `args.x == 1`, `args.x == 2`, `args.y == 1`}).Draw(t, "when"),
				Pattern: rapid.SampledFrom([]string{"", `"x":1`, `"x":2`}).Draw(t, "pattern"),
			}
			rules = append(rules, r)
			if r.GetName() == "other" || !conditions[r.GetWhen()] || !patterns[r.GetPattern()] {
				continue
			}
			want = r.GetPolicy()
			denied = denied || want == deny && r.GetWhen()+r.GetPattern() != ""
		}
		if denied {
			want = deny
		}
		yolo, granted := rapid.Bool().Draw(t, "yolo"), rapid.SampledFrom([][]string{nil, {"fetch"}}).Draw(t, "granted")
		if want == unset || want == ask && (yolo || granted != nil) {
			want = allow
		}
		p, err := Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := p.Decide(fetch, `{"x":1}`, Exemptions{Granted: granted, Yolo: yolo}); got != want {
			t.Fatalf("got %v (%s), want %v", got, why, want)
		}
	})
}

func FuzzCompilePolicy(f *testing.F) {
	f.Add("run_command", "args.command.contains('rm')", "^rm", `{"command":"rm"}`)
	f.Add("*", "", "a{1000}{1000}", `{"path":"/a/../b"}`)
	f.Add("x", "args.a.b[3] > 1.5", "(", `{"a":{"b":[1e400]}}`)
	f.Fuzz(func(t *testing.T, name, condition, expression, arguments string) {
		p, err := Compile([]*harnessv1.ToolRule{{Name: name, Policy: deny, When: condition, Pattern: expression}})
		if err != nil {
			var wrong *fault.FieldError
			if !errors.As(err, &wrong) || wrong.Message == "" || !strings.HasPrefix(wrong.Field, "tools[0].") {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, spec := range []*harnessv1.ToolSpec{runs, writes, fetch} {
			decision, why := p.Decide(spec, arguments, Exemptions{Yolo: true})
			if why == "" || !slices.Contains([]harnessv1.ToolDecision{allow, deny}, decision) {
				t.Fatalf("%v %q", decision, why)
			}
			if again, _ := p.Decide(spec, arguments, Exemptions{Yolo: true}); again != decision {
				t.Fatalf("%v and then %v", decision, again)
			}
		}
	})
}

func BenchmarkPolicy(b *testing.B) {
	p, err := Compile([]*harnessv1.ToolRule{
		simple("*", ask), pattern("run_command", allow, `^(go|make) `), when("run_command", deny, `args.command.contains("rm -rf")`), pattern("*", deny, `^secrets/`),
	})
	if err != nil {
		b.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]any{"command": "go test ./... # " + strings.Repeat("x", 200)})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, why := p.Decide(runs, string(arguments), Exemptions{}); got != allow {
			b.Fatal(got, why)
		}
	}
}
