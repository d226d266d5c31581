package toolhost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"equal":           {"a\n", "a\n", ""},
		"a new file":      {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"emptied":         {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"one line":        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"no line break":   {"a", "b", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		"two hunks":       {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n"},
		"near each other": {"1\n2\n3\n4\n5\n6\n7\n", "0\n1\n2\n3\n4\n5\n6\n", "@@ -1,7 +1,7 @@\n+0\n 1\n 2\n 3\n 4\n 5\n 6\n-7\n"},
	} {
		if got, _ := toolhost.Diff(c.before, c.after); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// Hunks elsewhere in a file are the same; other lines in or around them are not.
func TestDigestOfHunks(t *testing.T) {
	hunks := func(before, after string) string {
		_, digest := toolhost.Diff(before, after)
		return digest
	}
	shown := hunks("a\nb\nc\nold\nd\ne\nf\n", "a\nb\nc\nnew\nd\ne\nf\n")
	if got := hunks("x\ny\na\nb\nc\nold\nd\ne\nf\nz\n", "x\ny\na\nb\nc\nnew\nd\ne\nf\nz\n"); got != shown {
		t.Error("lines far from the change make a difference")
	}
	for _, before := range []string{"a\nb\nc\nolder\nd\ne\nf\n", "a\nb\nC\nold\nd\ne\nf\n", "a\nb\nc\nd\ne\nf\n", ""} {
		if hunks(before, "a\nb\nc\nnew\nd\ne\nf\n") == shown {
			t.Errorf("%q has the same hunks", before)
		}
	}
}

// patch(1) makes the second text of the first with the diff, also where the edit is long.
func TestDiffApplies(t *testing.T) {
	patch, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	apply := func(t interface{ Errorf(string, ...any) }, before, after string) {
		diff, _ := toolhost.Diff(before, after)
		if (diff == "") != (before == after) {
			t.Errorf("%q and %q: %q", before, after, diff)
		}
		if diff == "" || before == "" || after == "" {
			return
		}
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Errorf("%v", err)
		}
		cmd := exec.Command(patch, "apply", "--unidiff-zero", "-")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		cmd.Stdin = strings.NewReader("--- a/f\n+++ b/f\n" + diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, diff)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != after {
			t.Errorf("%q becomes %q, want %q, %v", before, got, after, err)
		}
	}
	apply(t, strings.Repeat("a\nb\n", 2000), strings.Repeat("b\nc\n", 2000))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"}), 0, 30).Draw(t, "lines"), "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end")
		})
		apply(t, text.Draw(t, "before"), text.Draw(t, "after"))
	})
}
