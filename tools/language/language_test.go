package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a source of files by their path.
func tree(files map[string]string) source {
	return func(each func(string, []byte) error) error {
		for file, content := range files {
			if err := each(file, []byte(content)); err != nil {
				return err
			}
		}
		return nil
	}
}

// found lists the findings of a file as "line kind word".
func found(t *testing.T, file, content string) []string {
	t.Helper()
	findings, err := scan(matchers(words), file, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%d %s %s", f.line, f.kind, f.word.name))
	}
	return list
}

func TestWordsInComments(t *testing.T) {
	for text, want := range map[string]string{
		"Nobody reads it.":                             "somebody",
		"Who reads it gets a copy.":                    "who",
		"usable says whether a model can be opened":    "says that",
		"what a line tells of":                         "tells of",
		"the field stands here twice":                  "stands",
		"how the run rests":                            "rests",
		"Mend the program.":                            "mend",
		"flags may follow behind it":                   "behind",
		"beside its floor":                             "beside",
		"a copy in place of the file":                  "in place of",
		"drawn anew":                                   "anew",
		"it goes on afterwards":                        "goes on",
		"a run that takes up work again":               "takes up",
		"Close lets go of the gateway":                 "lets go",
		"the directory is held by process 7":           "held by",
		"tools that are offered":                       "offers",
		"a look whose answer is lost":                  "a look",
		"closed for a while":                           "a moment",
		"the model is told":                            "is told",
		"the request is answered":                      "is answered",
		"executors of one's own":                       "of its own",
		"a call to the one who is meant":               "who what is meant",
		"passed on as it is.":                          "as it is",
		"what is there is kept":                        "what is there",
		"returns at once":                              "at once",
		"stored for good":                              "for good",
		"so many tokens at most":                       "so many",
		"it follows them to the letter":                "to the letter",
		"returns the text and what is closed by it":    "what is",
		"what the caller has asked for":                "what is",
		"decides what is sent":                         "",
		"what it sends":                                "",
		"a mutation that bites":                        "bite",
		"The run is parked.":                           "",
		"REST, and the rest of the records":            "",
		"encrypted at rest":                            "",
		"HTTP stands for a protocol":                   "",
		"a client who reads, the operators who deploy": "",
		"the replica lags behind, far behind":          "",
		"routes behind a reverse proxy":                "",
		"takes up to 5 s":                              "",
		"the mutex is held by the caller":              "",
		"as it is read":                                "",
		"so many that they do not fit":                 "",
		"compared word by word":                        "",
		"the question is answered":                     "",
		"A comment says no more than this.":            "",
	} {
		var got []string
		for _, f := range found(t, "a.proto", "// "+text+"\n") {
			got = append(got, strings.TrimPrefix(f, "1 comment "))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTextsOfEachFormat(t *testing.T) {
	for _, c := range []struct{ file, content, want string }{
		{"a.go", "// Package a waits.\n//\n// It says\n// that.\npackage a\n", "3 comment says that"},
		{"a.go", "package a\n\n//go:embed behind\nvar x string\n", ""},
		{"behind.go", "package a\n", "1 identifier behind"},
		{"a.go", "package a\n\nfunc runGoesOn() {}\n", "3 identifier goes on"},
		{"a.go", "package a\n\nfunc f() { atOnce := 1; _ = atOnce }\n", "3 identifier at once"},
		{"a.go", "package a\n\nfunc f() { _ = other.AtOnce }\n", ""},
		{"a.go", "package a\n\nfunc judgeCall() {}\n", "3 function insist"},
		{"a.go", "package a\n\nfunc lookUp() {}\n", ""},
		{"a.go", "package a\n\ntype completing struct{}\n", "3 type participle"},
		{"a.go", "package a\n\ntype feed struct{ completing bool }\n", ""},
		{"a.go", "package a\n\nvar err = errors.New(\"it is behind\" +\n\t\"at once\")\n", "3 message behind|4 message at once"},
		{"a.go", "package a\n\nvar p = ask(\"it is behind\")\n", ""},
		{"a.go", "package a\n\nvar d = metric{Description: `one\ngoes on`}\n", "4 message goes on"},
		{"cmd/a/a.go", "package a\n\nvar p = ask(\"it is behind\")\n", "3 message behind"},
		{"services/toolhost/a.go", "package a\n\nvar err = errors.New(\"it is behind\")\n", ""},
		{"a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n\n// behind\n", ""},
		{"a.md", "It goes\non. `at once` [x](behind)\n\n```\nbehind\n```\n", "1 document goes on"},
		{"a.sh", "#!/bin/behind\necho behind # at once\n# it goes\n# on\n", "2 comment at once|3 comment goes on"},
		{"deploy/a.yaml", "a: behind # at once\nsummary: it goes on\n", "1 comment at once|2 message goes on"},
		{"a.yaml", "description: behind # at once\n", "1 comment at once"},
		{"deploy/a.json", "{\n  \"title\": \"at once\",\n  \"expr\": \"behind\"\n}\n", "2 message at once"},
		{"a.py", "def f():\n    \"\"\"It goes\n    on.\"\"\"\n    return \"at once\"  # behind\n", "2 comment goes on|4 comment behind"},
		{"a.ts", "const a = \"at once // behind\"; // anew\n/**\n * It goes\n * on.\n */\nconst b = `\n// behind`;\n", "1 comment anew|3 comment goes on"},
		{"a.svg", "<text id=\"behind\">at once</text>\n", "1 document at once"},
		{"Makefile", "x: ## Mend it\n", "1 comment mend"},
		{"a.bin", "behind", ""},
	} {
		if got := strings.Join(found(t, c.file, c.content), "|"); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.file, c.content, got, c.want)
		}
	}
}

func TestCheckReportsWordsAndExceptions(t *testing.T) {
	files := map[string]string{
		"ours/a.go":   "// Package a is behind.\npackage a\n",
		"ours/b.sh":   "# lang: behind — the bow of a ship\n# is behind\n\n# lang: anew — not here\n",
		"ours/c.yaml": "# behind\n",
		"theirs/a.sh": "# behind\n",
	}
	for _, c := range []struct {
		paths      []string
		exceptions string
		want       []string
	}{
		{[]string{"ours"}, "# names\nours/c.yaml: behind — a name",
			[]string{"ours/a.go:1: comment: \"behind\"", "ours/b.sh:4: the exception for \"anew\" is not needed"}},
		{[]string{"theirs"}, "", []string{"theirs/a.sh:1: "}},
		{nil, "ours/c.yaml: behind — a name", []string{"ours/a.go:1: ", "ours/b.sh:4: ", "theirs/a.sh:1: "}},
		{[]string{"theirs/a.sh"}, "theirs/a.sh: anew — never", []string{"theirs/a.sh:1: ", "tools/language/exceptions.txt: the exception for \"anew\" in theirs/a.sh is not needed"}},
		{[]string{"nothing"}, "", nil},
	} {
		var out strings.Builder
		err := check(tree(files), c.paths, c.exceptions, &out)
		if (err != nil) != (c.want != nil) || strings.Count(out.String(), "\n") != len(c.want) {
			t.Errorf("%v: got %v and\n%s", c, err, &out)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: got %s, want %s", c, &out, want)
			}
		}
	}
	if err := check(tree(files), nil, "behind", &strings.Builder{}); err == nil {
		t.Error("an exception without a reason is accepted")
	}
}

// TestCheckCountsWhatIsLimited: uses up to the limit are listed for paths and pass.
func TestCheckCountsWhatIsLimited(t *testing.T) {
	const line = "# returns what is closed\n\n"
	limit := 0
	for _, w := range words {
		if w.name == "what is" {
			limit = w.most
		}
	}
	for _, c := range []struct {
		uses  int
		paths []string
		lines int
		fails bool
	}{
		{2, nil, 1, false}, {2, []string{"a.sh"}, 2, false}, {limit + 1, nil, 2, true}, {limit + 1, []string{"a.sh"}, limit + 1, false},
	} {
		var out strings.Builder
		err := check(tree(map[string]string{"a.sh": strings.Repeat(line, c.uses)}), c.paths, "", &out)
		if (err != nil) != c.fails || strings.Count(out.String(), "\n") != c.lines {
			t.Errorf("%+v: got %v and %d lines", c, err, strings.Count(out.String(), "\n"))
		}
	}
}

func TestCountOfCommitAndCheckout(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		"pkg/a/a.go":      "// Package a goes on.\npackage a\n\ntype waiting struct{}\n\ntype feed struct{}\n",
		"pkg/a/a_test.go": "package a\n\nfunc TestGoesOn() {}\n",
		"docs/a.md":       "It goes on.\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "First"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	var want strings.Builder
	if err := count(checkout(dir), &want); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(want.String(), "product: 1 comment lines in Go, 2 unexported types, 1 of them named by a participle") {
		t.Errorf("got\n%s", &want)
	}
	for line := range strings.Lines(want.String()) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "goes" && strings.Join(f[2:], " ") != "1 0 0 0 0 1 0 0 0 0 0 1" {
			t.Errorf("got %s", line)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "pkg")); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := count(commit(dir, "HEAD"), &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("the commit has\n%s\nthe checkout had\n%s", &got, &want)
	}
}
