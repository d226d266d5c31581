package markdown

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// coloured returns the coloured words of a line, as colour and text.
func coloured(text string) (list []string) {
	names := map[string]string{"31": "red", "32": "green", "34": "blue", "35": "magenta", "36": "cyan", "90": "grey", "1": "bold"}
	for _, part := range strings.Split(text, "\x1b[")[1:] {
		parameter, word, _ := strings.Cut(part, "m")
		if word != "" && parameter != "0" {
			list = append(list, names[parameter]+" "+word)
		}
	}
	return list
}

func TestHighlightColoursLanguages(t *testing.T) {
	for _, c := range []struct {
		language, code string
		want           []string
	}{
		{"go", `func f(x int) { return len("a\"b") + 0x1F } // end`, []string{"magenta func", "blue f", "cyan int", "magenta return", "cyan len", `green "a\"b"`, "cyan 0x1F", "grey // end"}},
		{"go", "x := `a\nb` /* c\nd */", []string{"green `a", "green b`", "grey /* c", "grey d */"}},
		{"python", "def f(a='x'): # no\n  return \"\"\"q\"\"\"", []string{"magenta def", "blue f", "green 'x'", "grey # no", "magenta return", `green """q"""`}},
		{"TypeScript", "const x: number = f(`t`)", []string{"magenta const", "cyan number", "blue f", "green `t`"}},
		{"rust", "fn f<'a>(s: &'a str) -> Option<u8> {}", []string{"magenta fn", "blue f", "cyan str", "cyan Option", "cyan u8"}},
		{"sh", "if [ $HOME ]; then echo a#b; fi # c", []string{"magenta if", "cyan $HOME", "magenta then", "cyan echo", "magenta fi", "grey # c"}},
		{"sql", "SELECT id FROM t WHERE n = 'x' -- all", []string{"magenta SELECT", "magenta FROM", "magenta WHERE", "green 'x'", "grey -- all"}},
		{"json", `{"a": "b", "n": -1.5, "t": true}`, []string{`blue "a"`, `green "b"`, `blue "n"`, "cyan 1.5", `blue "t"`, "magenta true"}},
		{"yaml", "key-a: value\nn: 7 # c\nurl: http://x", []string{"blue key-a", "blue n", "cyan 7", "grey # c", "blue url"}},
		{"toml", "[a]\nb = \"c\"", []string{"blue b", `green "c"`}},
		{"diff", "@@ -1 +1 @@\n-a\n+b\n c", []string{"bold @@ -1 +1 @@", "red -a", "green +b"}},
		{"html", `<a href="x">t</a><!-- c -->`, []string{"blue <a", "cyan href", `green "x"`, "blue >", "blue </a", "blue >", "grey <!-- c -->"}},
		{"unknown", "func f() {}", nil},
	} {
		if got := coloured(highlight(c.code, c.language)); !slices.Equal(got, c.want) {
			t.Errorf("%s %q:\n got %q\nwant %q", c.language, c.code, got, c.want)
		}
	}
}

func TestHighlightKeepsTheCode(t *testing.T) {
	names := []string{"diff", "html"}
	for name := range languages() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, code := range []string{"func é", "é", "日本 = x"} {
			if got := ansi.Strip(highlight(code, name)); got != code {
				t.Errorf("%s %q became %q", name, code, got)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "language")
		var code strings.Builder
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			code.WriteString(rapid.SampledFrom([]string{
				"func ", "x", "\n", `"`, "'", "`", "\\", "#", "//", "/*", "*/", "<", ">", "<!--", "-->", "$", "$a", "1.", "1..2", "é", "日本", "--", ":", "=", "(", "\ufffd", " ", "\t", `"""`, "+", "-",
			}).Draw(t, "piece"))
		}
		if got := ansi.Strip(highlight(code.String(), name)); got != code.String() {
			t.Fatalf("%s %q became %q", name, code.String(), got)
		}
	})
}

func FuzzHighlight(f *testing.F) {
	f.Add("func f() { return `a` }", "go")
	f.Add("<a b='c'", "html")
	f.Fuzz(func(t *testing.T, code, name string) {
		code = Clean(code)
		if got := ansi.Strip(highlight(code, name)); got != code {
			t.Fatalf("%s %q became %q", name, code, got)
		}
	})
}
