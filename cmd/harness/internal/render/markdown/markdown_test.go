package markdown

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	texts "github.com/harnessmesh/harnessmesh/pkg/content"
)

var update = flag.Bool("update", false, "write the golden files")

var looks = map[string]Look{
	"40": {Width: 40, UTF8: true}, "80": {Width: 80, UTF8: true}, "140": {Width: 140, UTF8: true},
	"80-colour": {Width: 80, Colour: true, UTF8: true}, "80-ascii": {Width: 80},
}

func sample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sample.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHowMarkdownLooks(t *testing.T) {
	text := sample(t)
	for name, look := range looks {
		got := strings.Join(New(look).Render(text), "\n") + "\n"
		path := filepath.Join("testdata", "sample-"+name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs\n got:\n%s\nwant:\n%s", path, got, want)
		}
	}
}

func TestSplitTellsBlocksApart(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"paragraphs":              {"a\nb\n\n\nc\n", []string{"a\nb\n\n\n", "c\n"}},
		"a heading ends itself":   {"# a\nb\n", []string{"# a\n", "b\n"}},
		"a list after words":      {"a:\n- b\n- c\n", []string{"a:\n", "- b\n- c\n"}},
		"a loose list":            {"- a\n\n- b\n\n  more of b\n\nc", []string{"- a\n\n- b\n\n  more of b\n\n", "c\n"}},
		"a year is no list":       {"it was in\n1984. A year.\n", []string{"it was in\n1984. A year.\n"}},
		"code with blank lines":   {"```go\na\n\nb\n```\nc\n", []string{"```go\na\n\nb\n```\n", "c\n"}},
		"a fence in a fence":      {"````\n```\n````\nc\n", []string{"````\n```\n````\n", "c\n"}},
		"code in a list":          {"- a\n  ```\n  b\n\n  c\n  ```\n- d\n", []string{"- a\n  ```\n  b\n\n  c\n  ```\n- d\n"}},
		"an underlined heading":   {"a\n---\nb\n", []string{"a\n---\nb\n"}},
		"a rule":                  {"a\n\n---\nb\n", []string{"a\n\n", "---\n", "b\n"}},
		"indented code":           {"    a\n\n    b\nc\n", []string{"    a\n\n    b\n", "c\n"}},
		"an open fence":           {"```\na\n\nb", []string{"```\na\n\nb\n"}},
		"a star that is a rule":   {"* * *\n* a\n", []string{"* * *\n", "* a\n"}},
		"blank lines at the ends": {"\n\na\n\n", []string{"a\n\n"}},
	} {
		if got := Blocks(test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// written is Markdown as models write it, and worse.
func written(t *rapid.T) string {
	pieces := []string{
		"\n", "\n\n", "words and words ", "**bold", "**", "*", "`", "```", "```go\n", "~~~\n", "- ", "1. ", "2) ", "  ", "    ", "\t", "# ", "> ",
		"| a | b |\n|---|---|\n| c | d |\n", "---", "===\n", "[link](http://a.b/c)", "![i](x)", "<b>", "</b>", "<!--", "&#27;[31m", "&#x9b;", "&amp;", "&NewLine;",
		"\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202e", "日本語", "👩‍👩‍👧", "e\u0301", "שלום", "[x] ", "[ ] ", "\\", "https://example.com/a-rather-long-path/that-goes-on", "\r\n", "\x00", "\u0085",
		"[1]: http://a\n", "- [x] ", ": d\n", "~~s~~", ":+1:",
	}
	var out strings.Builder
	for range rapid.IntRange(0, 30).Draw(t, "n") {
		out.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
	}
	return out.String()
}

// The shown text does not depend on the pieces in which it came.
func TestATextThatComesInPiecesHasTheSameBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Clean(written(t))
		var got []string
		open := ""
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			whole, left := Split(open + rest[:n])
			got, open, rest = append(got, whole...), left, rest[n:]
		}
		got = append(got, Blocks(open)...)
		if want := Blocks(text); !slices.Equal(got, want) {
			t.Fatalf("%q\nin pieces %q\nwhole     %q", text, got, want)
		}
		if all := strings.Join(got, ""); !slices.Equal(strings.Fields(all), strings.Fields(text)) {
			t.Fatalf("%q is %q in blocks", text, all)
		}
	})
}

// Nothing that a text holds reaches the terminal but as text.
func TestNoTextReachesTheTerminalAsAControlSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		look := Look{Width: rapid.IntRange(5, 120).Draw(t, "width"), Colour: rapid.Bool().Draw(t, "colour"), UTF8: rapid.Bool().Draw(t, "utf8")}
		text := written(t)
		for _, line := range New(look).Render(text) {
			if fault := unsafe(line, look.Colour); fault != "" {
				t.Fatalf("%q: %q: %s", text, line, fault)
			}
		}
	})
}

// unsafe returns what a line contains except text and, with colour, SGR sequences that
// end in it; empty if nothing.
func unsafe(line string, colour bool) string {
	plain := line
	if colour {
		plain = ansi.Strip(line)
		for _, seq := range strings.Split(line, "\x1b[")[1:] {
			if end := strings.IndexFunc(seq, func(r rune) bool { return !strings.ContainsRune("0123456789;:", r) }); end < 0 || seq[end] != 'm' {
				return "a sequence that is no SGR"
			}
		}
		if strings.Contains(line, "\x1b[") && !strings.HasSuffix(line, "\x1b[0m") && !strings.Contains(line[strings.LastIndex(line, "\x1b["):], "\x1b[0m") {
			return "it is left switched on"
		}
	}
	for _, r := range plain {
		if texts.Controls(r) {
			return fmt.Sprintf("it holds %q", r)
		}
	}
	return ""
}

func TestAnEntityCannotSwitchColoursOn(t *testing.T) {
	got := strings.Join(New(Look{Width: 80, Colour: true, UTF8: true}).Render("a &#27;[31mred&#x1b;[8m and `&#27;` and &lt;b&gt;\n\n| a |\n|---|\n| &#155;31m |\n"), "\n")
	if strings.Contains(got, "\x1b[31m") || strings.Contains(got, "\x1b[8m") || !strings.Contains(got, "&#27;[31mred") || !strings.Contains(got, "<b>") {
		t.Errorf("%q", got)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n\n- b\n\n```go\nc\n```\n\x1b[2J&#27;[31m", 40, true)
	f.Fuzz(func(t *testing.T, text string, width int, colour bool) {
		for _, line := range New(Look{Width: width % 200, Colour: colour}).Render(text) {
			if fault := unsafe(line, colour); fault != "" {
				t.Fatalf("%q: %q: %s", text, line, fault)
			}
		}
	})
}

func TestWordsStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{20, 40, 80} {
		look := Look{Width: width, Colour: true, UTF8: true}
		text := "## A heading of several words that is long\n\nsome *words* and **more words** in a row, 日本語のテキストが続きます until the line ends\n\n" +
			"- an item of a list that is rather long\n  - one below it that is also rather long\n\n1. first of many words in a list\n\n> quoted words that go on and on for a while\n"
		for _, line := range New(look).Render(text) {
			if ansi.StringWidth(line) > width {
				t.Errorf("%d columns in %d: %q", ansi.StringWidth(line), width, line)
			}
		}
	}
}

func TestBlocksInItemsKeepTheirPlace(t *testing.T) {
	for text, want := range map[string][]string{
		"- a\n  b\n- c":                {"• a b", "• c"},
		"- a\n\n  b\n- c":              {"• a", "", "  b", "• c"},
		"- a\n  ```go\n  x\n  ```\n":   {"• a", "  x"},
		"- a\n\n  > q\n":               {"• a", "  │ q"},
		"9. a\n   - b\n10. c":          {"9. a", "  • b", "10. c"},
		"> - a\n>\n> b":                {"│ • a", "│", "│ b"},
		"***a*** **b *c* d**":          {"***a*** **b *c* d**"},
		"[t](p \"x\") ![i](u) <m@x.y>": {"t p i u m@x.y"},
		"<b>a</b><!-- c --> b":         {"a b"},
		"T\n: d\n: e":                  {"T", "  d", "  e"},
		"\\*a\\* &amp; `\\*`":          {"*a* & `\\*`"},
	} {
		if got := New(Look{Width: 60, UTF8: true}).Render(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLinksOfATableFollowIt(t *testing.T) {
	got := New(Look{Width: 60, UTF8: true}).Render("| l | i |\n|---|---|\n| [t](http://a.b) | ![i](http://x/y.png) |\n| [t](http://a.b) | https://c.d/e |\n")
	want := []string{"[1]: t http://a.b", "[2]: c.d https://c.d/e", "", "[1]: i http://x/y.png"}
	if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		t.Errorf("got %q, want it to end with %q", got, want)
	}
}
