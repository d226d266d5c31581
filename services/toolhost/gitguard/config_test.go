package gitguard

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byGit returns the settings that git reads from a file; ok is false if it refuses it.
func byGit(t *testing.T, text string) (settings []Setting, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "config", "--no-includes", "--file", file, "--list", "-z").Output()
	if err != nil {
		return nil, false
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, found := strings.Cut(entry, "\n")
		if entry != "" {
			settings = append(settings, Setting{Key: key, Value: value, Bare: !found})
		}
	}
	return settings, true
}

var sampleConfigs = []string{
	"",
	"[core]\n\tbare = false\n",
	"\uFEFF[core]\r\n\tbare = false\r\n",
	"[Core]BARE=true",
	"[core] bare",
	"[core]\n\tbare\n\tfilemode = on # why\n\teditor = \"vi # x\" ; y\n",
	"[remote \"A b\"]\n\turl = x\n[REMOTE \"a\\\"b\\\\c\\d\"]\n\turl = y\n",
	"[remote.Sub]\n\turl = x\n",
	"[alias]\n\tst = \"!f() { \\\n echo; }; f\"\n\tlong = a\\\nb \\\n c\n",
	"[a]\n\tb = x\\ty\\nz\\\"\\\\\n\tc = \"  x  \"  \n\td = x \"y\" z\n\te = a   b\n",
	"[a]\n# [core]\n;x = y\n\tb = c#d\n\te = c;d\n",
	"[a]b=c[d]e=f\n",
	"[a]\nb = \n c =d\n",
	"[a]\n\tb = \"\"\n",
	"[include]\n\tpath = x\n[includeIf \"gitdir:~/x/\"]\n\tpath = y\n",
	"[a] b = c\n[a \"\"] b = d\n",
	"[a.b.c]d=e",
	"   [  a]\n", "[a", "[a]\nb = \"c", "[a]\nb = \\q\n", "b = c\n", "[a]\n1b = c\n", "[a]\nb ; c\n", "[a \"b]\nc=d\n", "[a \"b\" ]\nc=d\n",
	"[a]\nb = c\\", "[]\nb=c", "[a]\nb_c = d\n", "[\"a\"]\nb=c\n", "[a]\nb = c\rd\n", "[a]\n\vb=c\n", "[a]\nb=c\x00d\n",
}

// TestConfigIsReadAsGitReadsIt: what this parser reads, git reads in the same way.
func TestConfigIsReadAsGitReadsIt(t *testing.T) {
	sure := 0
	for _, text := range sampleConfigs {
		got, err := ParseConfig([]byte(text))
		if err != nil {
			continue
		}
		sure++
		want, ok := byGit(t, text)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, git %+v", text, got, want)
		}
		again, err := ParseConfig(FormatConfig(got))
		if formatted, _ := byGit(t, string(FormatConfig(got))); err != nil || !slices.Equal(again, got) || !slices.Equal(formatted, got) {
			t.Errorf("%q: formatted %q", text, FormatConfig(got))
		}
	}
	if sure < 16 {
		t.Errorf("only %d texts were read", sure)
	}
}

// FuzzConfig: no text is read in another way than git reads it.
func FuzzConfig(f *testing.F) {
	for _, text := range sampleConfigs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseConfig([]byte(text))
		if err != nil || strings.ContainsAny(text, "\t") || strings.Contains(text, "  ") {
			return // versions of git differ in blanks within values
		}
		if want, ok := byGit(t, text); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, git %+v, %t", text, got, want, ok)
		}
	})
}
