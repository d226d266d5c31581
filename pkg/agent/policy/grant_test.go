package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

func encode(arguments map[string]any) string {
	data, _ := json.Marshal(arguments)
	return string(data)
}

func guardedOf(file string) string { return sandbox.Guarded(file) }

func withPrefixes(words ...string) []*harnessv1.ToolRule {
	var rules []*harnessv1.ToolRule
	for _, text := range words {
		rules = append(rules, &harnessv1.ToolRule{Name: "run_command", Policy: allow, Prefix: text})
	}
	return rules
}

func hosted(spec *harnessv1.ToolSpec) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: spec.GetName(), Annotations: spec.GetAnnotations(), Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}
}

func TestGrantsCoverEachSimpleCommand(t *testing.T) {
	deny := pattern("run_command", deny, "secret")
	p, err := Compile([]*harnessv1.ToolRule{deny})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line  string
		rules []*harnessv1.ToolRule
		want  harnessv1.ToolDecision
	}{
		{"go test", withPrefixes("go test"), allow},
		{"cd web && npm test", withPrefixes("npm test"), ask},
		{"cd web && npm test", withPrefixes("npm test", "cd"), allow},
		{"cd web && npm test; rm x", withPrefixes("npm test", "cd"), ask},
		{"go test secret", withPrefixes("go test"), harnessv1.ToolDecision_TOOL_DECISION_DENY},
		{"go test", []*harnessv1.ToolRule{{Name: "write_file", Prefix: "go test"}}, ask},
		{"go test", []*harnessv1.ToolRule{{Name: "run_command", Prefix: "go test;"}}, ask},
		{"go test", []*harnessv1.ToolRule{{Name: "run_command"}}, ask},
		{"go test", nil, ask},
	} {
		if got, _ := p.Decide(runs, encode(map[string]any{"command": c.line}), Exemptions{Rules: c.rules}); got != c.want {
			t.Errorf("%q with %v: %v, want %v", c.line, c.rules, got, c.want)
		}
	}
}

// TestProposals: the rule that is shown fits the call, and no call that does something else. A
// want after = is a command, exactly.
func TestProposals(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...":                        "go test",
		"go test ./... -run X 2>&1 | tail -20": "go test, tail",
		"cd web && npm run build -- --x":       "cd web, npm run build",
		"cd ../b && npm ci":                    "cd, npm ci",
		"ls -la":                               "ls",
		"make -j4":                             "=make -j4",
		"make check":                           "make check",
		"git commit -m 'x y'":                  "git commit",
		"git push":                             "=git push",
		"git -c a=b status":                    "=git -c 'a=b' status",
		"python3 scripts/a.py --x":             "python3 scripts/a.py",
		"python3 -c 'print(1)'":                "=python3 -c 'print(1)'",
		"'./my tool' x":                        "='./my tool' x",
		"go test && go test ./b":               "go test",
		"rm -rf build":                         "=rm -rf build",
		"go test; rm x":                        "go test, =rm x",
		"curl example.com":                     "=curl example.com",
		"sh build.sh":                          "=sh build.sh",
		"go test $(x)":                         "=go test $(x)",
		"go test > out":                        "=go test > out",
		"X=1 go test":                          "=X=1 go test",
		"go test && rm *.o":                    "=go test && rm *.o",
		"a; a; b c":                            "=a, =b c",
		"go test \u202e":                       "",
		strings.Repeat("x", 1025):              "",
		"":                                     "",
	} {
		arguments := encode(map[string]any{"command": line})
		var got []string
		rules := Propose(hosted(runs), arguments, "/work")
		for _, r := range rules {
			if r.GetCommand() != "" {
				got = append(got, "="+r.GetCommand())
			} else {
				got = append(got, r.GetPrefix())
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
		if len(rules) > 0 && !Granted(rules, runs, arguments, "/work") {
			t.Errorf("%q: %q does not fit it", line, got)
		}
	}
	for file, want := range map[string]string{
		"docs/a.md": "docs/**", "a.md": "a.md", "/work/src/b/c.go": "src/b/**", "/etc/passwd": "", "../x": "", "docs/AGENTS.md": "", "a[1]/b*": `a\[1]/**`, "": "",
	} {
		rules := Propose(hosted(writes), encode(map[string]any{"path": file}), "/work")
		got := ""
		for _, r := range rules {
			got += r.GetPath()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	client := &harnessv1.ToolSpec{Name: "deploy", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT, Annotations: &harnessv1.ToolAnnotations{Executes: true}}
	if rules := Propose(client, `{"command":"go test","path":"a"}`, "/work"); rules != nil {
		t.Errorf("a client's tool: %v", rules)
	}
}

// TestRulesOfAnApprovalAreChecked, with the place of the fault.
func TestRulesOfAnApprovalAreChecked(t *testing.T) {
	type rules = []*harnessv1.ToolRule
	rule := func(change func(*harnessv1.ToolRule)) rules {
		r := withPrefixes("go test")
		change(r[0])
		return r
	}
	for name, c := range map[string]struct {
		spec  *harnessv1.ToolSpec
		rules rules
		field string
	}{
		"it fits":             {runs, withPrefixes("go test"), ""},
		"shorter":             {runs, withPrefixes("go"), ""},
		"with a stored one":   {runs, withPrefixes("go test"), ""},
		"no policy":           {runs, rule(func(r *harnessv1.ToolRule) { r.Policy = unset }), ""},
		"another command":     {runs, withPrefixes("go vet"), "rules"},
		"no words":            {runs, withPrefixes("go; rm"), "rules[0].prefix"},
		"the second":          {runs, withPrefixes("go test", "sudo"), "rules[1].prefix"},
		"another tool":        {runs, rule(func(r *harnessv1.ToolRule) { r.Name = "write_file" }), "rules[0].name"},
		"every tool":          {runs, rule(func(r *harnessv1.ToolRule) { r.Name = "*" }), "rules[0].name"},
		"a denial":            {runs, rule(func(r *harnessv1.ToolRule) { r.Policy = deny }), "rules[0].policy"},
		"a pattern":           {runs, rule(func(r *harnessv1.ToolRule) { r.Pattern = "go" }), "rules[0]"},
		"the whole tool":      {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix = "" }), "rules[0]"},
		"a path of a command": {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix, r.Path = "", "**" }), "rules[0].path"},
		"both":                {runs, rule(func(r *harnessv1.ToolRule) { r.Path = "**" }), "rules[0].path"},
		"a prefix of a file":  {writes, rule(func(r *harnessv1.ToolRule) { r.Name = "write_file" }), "rules[0].prefix"},
		"exactly it":          {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix, r.Command = "", "go test ./..." }), ""},
		"exactly another":     {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix, r.Command = "", "go test" }), "rules"},
		"a prefix and a line": {runs, rule(func(r *harnessv1.ToolRule) { r.Command = "go test ./..." }), "rules[0].command"},
		"a hidden character":  {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix, r.Command = "", "go test\u200b" }), "rules[0].command"},
		"a long line":         {runs, rule(func(r *harnessv1.ToolRule) { r.Prefix, r.Command = "", strings.Repeat("a", 1025) }), "rules[0].command"},
		"a line of a file":    {writes, rule(func(r *harnessv1.ToolRule) { r.Name, r.Prefix, r.Command = "write_file", "", "go test" }), "rules[0].command"},
		"too many":            {runs, withPrefixes(strings.Fields("go a b c d e f g h")...), "rules"},
	} {
		err := CheckGrant(c.rules, nil, c.spec, `{"command":"go test ./..."}`, "/work")
		var wrong *fault.FieldError
		if errors.As(err, &wrong); (err == nil) != (c.field == "") || err != nil && (wrong == nil || wrong.Field != c.field) {
			t.Errorf("%s: %v, want %q", name, err, c.field)
		}
	}
	if err := CheckGrant(withPrefixes("go test"), withPrefixes("cd"), runs, `{"command":"cd a && go test"}`, ""); err != nil {
		t.Errorf("with a stored rule: %v", err)
	}
	guarded := rules{{Name: "write_file", Path: "**"}}
	if err := CheckGrant(guarded, nil, writes, `{"path":"AGENTS.md"}`, ""); err == nil {
		t.Error("a guarded file is granted for the run")
	}
}
