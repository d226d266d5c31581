package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// in returns what waits in files, each as "package.Function duration".
func in(t *testing.T, files map[string]string) []string {
	t.Helper()
	tr := &tree{fset: token.NewFileSet(), folders: map[string]*folder{}}
	for file, source := range files {
		parsed, err := parser.ParseFile(tr.fset, file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		tr.add(file, parsed)
	}
	tr.findBubbles()
	var list []string
	for _, w := range tr.waits() {
		list = append(list, w.function+" "+w.long)
	}
	return list
}

func TestWaitsOfOneFunction(t *testing.T) {
	const unknown = "for a time that cannot be computed"
	for _, c := range []struct{ body, want string }{
		{"time.Sleep(3 * time.Second)", "3s"},
		{"time.Sleep(2 * time.Second)", ""},
		{"time.Sleep(20 * time.Millisecond)", ""},
		{"time.Sleep(pause)", "1m0s"},
		{"time.Sleep(other.Pause / 2)", "30s"},
		{"time.Sleep(time.Duration(3e9))", "3s"},
		{"d := 3 * time.Second; time.Sleep(d)", "3s"},
		{"const d = 3 * time.Second; time.Sleep(d)", "3s"},
		{"d := time.Second; d = 2 * d; time.Sleep(d)", unknown},
		{"<-time.After(3 * time.Second)", "3s"},
		{"<-time.After(rand.N(5 * time.Second))", "5s"},
		{"<-time.After(time.Duration(random.IntN(1500)) * time.Millisecond)", ""},
		{"<-time.After(time.Until(start.Add(15 * time.Second)))", "15s"},
		{"<-time.After(min(x, time.Second))", ""},
		{"<-time.After(x)", unknown},
		{"timer := time.NewTimer(time.Hour); <-timer.C", "1h0m0s"},
		{"select { case <-done: case <-time.After(time.Minute): t.Fatal(1) }", ""},
		{"end := time.After(time.Minute); select { case <-done: case <-end: t.Fatal(1) }", ""},
		{"select { case <-done: t.Fatal(1); case <-time.After(time.Minute): }", "1m0s"},
		{"select { case <-ctx.Done(): case <-time.After(time.Minute): }", "1m0s"},
		{"select { case <-done: case <-time.After(time.Minute): }", ""},
		{"for { select { case <-done: return; case <-time.After(time.Second): } }", ""},
		{"select { case <-done: time.Sleep(time.Minute); default: }", "1m0s"},
		{"synctest.Test(t, func(t *testing.T) { time.Sleep(time.Hour) })", ""},
		{"other.Bubble(func() { time.Sleep(time.Hour) })", ""},
		{"hold(time.Minute)", "1m0s"},
		{"hold(time.Millisecond)", ""},
		{"other.Hold(t, time.Minute)", "1m0s"},
		{"soonest(time.Minute)", "1m0s"},
	} {
		source := "package a\n\nimport (\n\"testing/synctest\"\n\"time\"\n\"" + module + "/test/other\"\n)\n\n" +
			"const pause = time.Minute\n\nfunc hold(d time.Duration) { time.Sleep(d) }\n\n" +
			"func soonest(d time.Duration) { hold(rand.N(d)) }\n\n" +
			"func TestA(t *testing.T) {\n" + c.body + "\n}\n"
		other := "package other\n\nimport (\n\"testing/synctest\"\n\"time\"\n)\n\nconst Pause = time.Minute\n\n" +
			"func Hold(t *testing.T, d time.Duration) { <-time.After(d) }\n\nfunc Bubble(f func()) { synctest.Test(nil, func(*testing.T) { f() }) }\n"
		want := ""
		if c.want != "" {
			want = "a.TestA " + c.want
		}
		if got := strings.Join(in(t, map[string]string{"pkg/a/a_test.go": source, "test/other/other.go": other}), "; "); got != want {
			t.Errorf("%s: got %q, want %q", c.body, got, want)
		}
	}
}

func TestWaitsOfTestsOnly(t *testing.T) {
	for _, c := range []struct {
		file, pkg, function string
		want                bool
	}{
		{"pkg/a/a.go", "a", "F", false},
		{"pkg/a/a_test.go", "a_test", "F", true},
		{"pkg/a/a_test.go", "a", "BenchmarkF", false},
		{"test/kit/a/a.go", "a", "F", true},
		{"test/program/main.go", "main", "F", false},
		{"test/program/main_test.go", "main", "F", true},
		{"bench/a/a_test.go", "a", "measure", false},
		{"bench/a/a_test.go", "a", "TestF", true},
	} {
		source := "package " + c.pkg + "\n\nimport \"time\"\n\nfunc " + c.function + "() { time.Sleep(time.Hour) }\n"
		if got := len(in(t, map[string]string{c.file: source})) > 0; got != c.want {
			t.Errorf("%s %s: got %v", c.file, c.function, got)
		}
	}
}

func TestCheckReportsWaitsAndNames(t *testing.T) {
	found := []wait{{"a_test.go", 1, "a.TestA", "3s"}, {"b_test.go", 2, "b.TestB", "3s"}}
	many := ""
	for i := range most + 1 {
		many += "a.Test" + strings.Repeat("X", i+1) + " — reason\n"
	}
	for _, c := range []struct {
		name, list, err string
		lines           []string
	}{
		{"all named", "# list\na.TestA — why\nb.TestB — why\n", "", nil},
		{"one missing", "a.TestA — why\n", "1 findings", []string{"b_test.go:2: b.TestB waits 3s"}},
		{"one too many", "a.TestA — why\nb.TestB — why\nc.TestC — why\n", "1 findings", []string{"tools/waits/allowed.txt: c.TestC: not needed"}},
		{"no reason", "a.TestA\n", "expected package.Function — reason", nil},
		{"twice", "a.TestA — why\na.TestA — why\n", "duplicate", nil},
		{"21 names", many, "21 names exceed 20", nil},
	} {
		var out strings.Builder
		err := check(found, c.list, &out)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
		if strings.Count(out.String(), "\n") != len(c.lines) {
			t.Errorf("%s: got\n%s", c.name, &out)
		}
		for _, want := range c.lines {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got\n%s, want %q", c.name, &out, want)
			}
		}
	}
}

// TestListIsValid checks allowed.txt alone: make lint compares it with the tree.
func TestListIsValid(t *testing.T) {
	var found []wait
	for line := range strings.Lines(allowedFile) {
		if name, _, ok := strings.Cut(line, " — "); ok && !strings.HasPrefix(line, "#") {
			found = append(found, wait{function: name})
		}
	}
	if err := check(found, allowedFile, &strings.Builder{}); err != nil {
		t.Error(err)
	}
}
