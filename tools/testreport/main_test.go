package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The reports of real runs of go test over packages that go wrong in each way.
func TestReport(t *testing.T) {
	const head = "package p\n\nimport \"testing\"\n\n"
	cases := []struct {
		name, source string
		want         counts
		says         string
	}{
		{"passes", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}", counts{2, 0, 0}, "ok   example.com/p: 2 passed"},
		{"fails", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Error(\"reason\") }", counts{1, 1, 0}, "reason"},
		{"skips", "func TestA(t *testing.T) { t.Skip() }", counts{0, 0, 1}, "skipped: TestA"},
		{"counts subtests once", "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(*testing.T) {})\n\tt.Run(\"y\", func(t *testing.T) { t.Error(\"deep\") })\n}", counts{1, 1, 0}, "deep"},
		{"fails above passing subtests", "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(*testing.T) {})\n\tt.Error(\"above\")\n}", counts{1, 1, 0}, "above"},
		{"panics", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { panic(\"boom\") }", counts{1, 1, 0}, "boom"},
		{"does not build", "func TestA(t *testing.T) { undefined() }", counts{0, 1, 0}, "undefined: undefined"},
		{"exits outside its tests", "func TestA(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run(); panic(\"leak\") }", counts{1, 1, 0}, "leak"},
		{"runs fuzz seeds", "func FuzzA(f *testing.F) {\n\tf.Add(1)\n\tf.Add(2)\n\tf.Fuzz(func(*testing.T, int) {})\n}", counts{2, 0, 0}, "2 passed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "p_test.go": head + c.source} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
			cmd.Dir = dir
			news, _ := cmd.Output() // exits 1 when a test fails, as some must here
			check(t, string(news), c.want, c.says)
		})
	}
}

// A run that was killed half-way is a failure, whatever it had passed.
func TestReportCutOff(t *testing.T) {
	check(t, `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
`, counts{1, 1, 0}, "FAIL p")
}

func TestReportOfNothing(t *testing.T) {
	if _, err := report(strings.NewReader("make: go: not found\n"), new(strings.Builder)); err == nil {
		t.Error("no tests ran, and nobody objects")
	}
}

func check(t *testing.T, news string, want counts, says string) {
	t.Helper()
	var out strings.Builder
	got, err := report(strings.NewReader(news), &out)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("counted %+v, want %+v\n%s", got, want, &out)
	}
	if !strings.Contains(out.String(), says) {
		t.Errorf("does not say %q:\n%s", says, &out)
	}
}
