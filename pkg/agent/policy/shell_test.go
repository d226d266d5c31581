package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestAPrefixFitsOnlyPlainCommands: what a person allowed as go test allows nothing else.
func TestAPrefixFitsOnlyPlainCommands(t *testing.T) {
	for line, want := range map[string]bool{
		"go test":                            true,
		"go test ./...":                      true,
		"  go\ttest -run 'A|B' ./pkg/*  ":    true,
		`go "test" ./a\ b`:                   true,
		`go te'st' -run "a \"b\" c"`:         true,
		"go test ./... 2>&1":                 true,
		"go test >/dev/null 2>&1":            true,
		"go test 2> /dev/null ; go test ./b": true,
		"go test a && go test b":             true,
		"go test a || go test b | go test c": true,
		"go test a\n\ngo test b\n":           true,
		"go test;":                           true,
		"go test -run '$(rm x)'":             true,
		"go test -run A#B":                   true,
		"go test ~/x":                        true,

		"":                                false,
		"go":                              false,
		"go vet":                          false,
		"go testx":                        false,
		"gotest":                          false,
		"go  'test '":                     false,
		"go test; rm -rf /":               false,
		"go test && rm x":                 false,
		"go test || rm x":                 false,
		"go test | sh":                    false,
		"go test | tee x":                 false,
		"go test & rm x":                  false,
		"go test &":                       false,
		"go test $(rm x)":                 false,
		`go test "$(rm x)"`:               false,
		"go test `rm x`":                  false,
		"go test \"`rm x`\"":              false,
		"go test $X":                      false,
		`go test "$X"`:                    false,
		`go test ${X:-$(rm x)}`:           false,
		`go test $'x'`:                    false,
		`go test $((1))`:                  false,
		"go test > /etc/passwd":           false,
		"go test >/dev/nullx":             false,
		"go test >/dev/null/../x":         false,
		"go test 2>&1x":                   false,
		"go test >>x":                     false,
		"go test &>x":                     false,
		"go test >&x":                     false,
		"go test < x":                     false,
		"go test <<EOF\nrm\nEOF":          false,
		"go test <<< x":                   false,
		"go test <(rm x)":                 false,
		"go test\nrm x":                   false,
		"go test \n rm":                   false,
		"go test \\\nrm":                  false,
		"go test\rrm x":                   false,
		"go test\u00a0x":                  false,
		"go test\u2028rm x":               false,
		"go test \u202e":                  false,
		"go test \x00":                    false,
		"go test \xff":                    false,
		"X=1 go test":                     false,
		"X=1; go test":                    false,
		"PATH=/tmp:$PATH go test":         false,
		"env X=1 go test":                 false,
		"sudo go test":                    false,
		"/usr/bin/sudo go test":           false,
		"time go test":                    false,
		"exec go test":                    false,
		"eval go test":                    false,
		". ./x && go test":                false,
		"! go test":                       false,
		"(go test)":                       false,
		"{ go test; }":                    false,
		"go test {a,b}":                   false,
		"if go test; then go test; fi":    false,
		"while go test; do go test; done": false,
		"go() { rm x; }; go test":         false,
		"alias go=rm; go test":            false,
		"export PATH=x; go test":          false,
		"go test # and then":              false,
		"#go test":                        false,
		"go test 'a":                      false,
		`go test "a`:                      false,
		`go test \`:                       false,
		"go test 'a\nb'":                  false,
		"go t[e]st":                       false,
		"g? test":                         false,
		"./go test":                       false,
		"go test && ":                     false,
		"&& go test":                      false,
		"go test ;; go test":              false,
		"go test |& cat":                  false,
	} {
		p, err := parsePrefix("go test")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.fits(line, false); got != want {
			t.Errorf("%q: allowed %v", line, got)
		}
		if _, plain := simpleCommands(line); !plain && !p.fits(line, true) {
			t.Errorf("%q is not plain, and a rule that denies does not fit it", line)
		}
	}
}

// TestPrefixesAreFirstWords of one command.
func TestPrefixesAreFirstWords(t *testing.T) {
	for _, text := range []string{
		"", " ", "go test;", "go; rm", "go test 2>&1", "go > x", "go $X", "X=1", "X=1 go", "sh", "sh -c", "sudo", "/bin/bash", "env", "xargs rm", "go *", "~/x", "go && go",
		"go\ntest", "if", "{", "'", "go # x", strings.Repeat("a", 1025),
	} {
		if p, err := parsePrefix(text); err == nil {
			t.Errorf("%q is a prefix: %q", text, p)
		}
	}
	p, err := parsePrefix(`  git  commit '-m x' a\ b "c*" ''`)
	if want := []string{"git", "commit", "-m x", "a b", "c*", ""}; err != nil || !slices.Equal(p, want) {
		t.Errorf("got %q, %v", p, err)
	}
}

// TestShellsRunWhatIsPlain: shells pass to programs the words that simpleCommands returns,
// and run nothing else.
func TestShellsRunWhatIsPlain(t *testing.T) {
	programs, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"go", "ls", "rm"} {
		// One write for each program: those of a pipeline run at the same time.
		script := "#!/bin/sh\nprintf '%s\\002' \"$(printf '%s\\001' \"${0##*/}\" \"$@\")\" >>\"$RAN\"\n"
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var shells []string
	for _, name := range []string{"sh", "dash", "bash"} {
		if file, err := exec.LookPath(name); err == nil {
			shells = append(shells, file)
		}
	}
	pieces := []string{
		"go", "ls", "rm", "test", " ", " ", " ", "\t", "\n", ";", "&&", "||", "|", "&", "'", "\"", "\\", "#", "$(rm)", "`rm`", "$X", "${X}", ">&1", "2>&1", ">/dev/null", "<", "=",
		"{", "}", "(", ")", "!", "a b", "''", "\"x y\"", "'x;y'", "\\ ", "\\;", "-a", "=1", "if", "then", "fi", "@", "%", "\\$", "$'", "é",
	}
	plainLines := 0
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"go ", "ls ", ""}).Draw(t, "first") + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 9).Draw(t, "pieces"), "")
		commands, plain := simpleCommands(line)
		if !plain || slices.ContainsFunc(commands, func(c []word) bool { return slices.ContainsFunc(c, func(w word) bool { return w.expands }) }) {
			return
		}
		plainLines++
		for _, shell := range shells {
			ran := filepath.Join(empty, "..", "ran")
			_ = os.Remove(ran)
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir, cmd.Env = empty, []string{"PATH=" + programs, "RAN=" + ran, "LC_ALL=C.UTF-8"}
			_ = cmd.Run()
			data, _ := os.ReadFile(ran)
			for _, one := range strings.Split(strings.TrimSuffix(string(data), "\x02"), "\x02") {
				got := strings.Split(strings.TrimSuffix(one, "\x01"), "\x01")
				if one != "" && !slices.ContainsFunc(commands, func(c []word) bool {
					return slices.EqualFunc(c, got, func(w word, s string) bool { return w.text == s })
				}) {
					t.Fatalf("%s ran %q for %q, read as %v", shell, got, line, commands)
				}
			}
		}
	})
	if plainLines == 0 {
		t.Error("no line was plain")
	}
}

// TestPathRules: a folder of the workspace, and nothing outside of it.
func TestPathRules(t *testing.T) {
	for _, c := range []struct {
		glob, file string
		allow      bool
	}{
		{"docs/**", "docs/a.md", true},
		{"docs/**", "docs/a/b/c.md", true},
		{"docs/**", "./docs/a.md", true},
		{"docs/**", "/work/docs/a.md", true},
		{"docs/*.md", "docs/a.md", true},
		{"**/*.go", "a/b/c.go", true},
		{"a.md", "a.md", true},
		{"docs/**", "docsx/a.md", false},
		{"docs/**", "docs/../a.md", false},
		{"docs/**", "docs/x/../a.md", false},
		{"docs/**", "/docs/a.md", false},
		{"docs/**", "/work2/docs/a.md", false},
		{"docs/**", "../docs/a.md", false},
		{"docs/*.md", "docs/a/b.md", false},
		{"a.md", "b/a.md", false},
		{"docs/**", "", false},
		{"**", "docs/AGENTS.md", false},
		{"**", "/etc/passwd", false},
	} {
		rules := []*harnessv1.ToolRule{{Name: "write_file", Path: c.glob}}
		arguments := encode(map[string]any{"path": c.file})
		decision, _ := (*Policy)(nil).Decide(writes, arguments, Exemptions{Rules: rules, Workspace: "/work", Guarded: guardedOf(c.file)})
		asks, err := Compile([]*harnessv1.ToolRule{simple("write_file", ask)})
		if err != nil {
			t.Fatal(err)
		}
		if c.glob != "**" || guardedOf(c.file) == "" {
			decision, _ = asks.Decide(writes, arguments, Exemptions{Rules: rules, Workspace: "/work"})
		}
		if (decision == allow) != c.allow {
			t.Errorf("%s for %q: %v", c.glob, c.file, decision)
		}
	}
	for _, bad := range []string{"/etc/**", "../x", "a/../b", ".", "a//b", "[", strings.Repeat("a", 1025)} {
		if _, err := parsePath(bad); err == nil {
			t.Errorf("%q is a path of a rule", bad)
		}
	}
}
