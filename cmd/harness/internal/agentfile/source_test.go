package agentfile

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// TestAPlaceInAValueIsFoundInTheFile writes a value with a mark somewhere in it in
// every style that YAML has, and looks for the mark.
func TestAPlaceInAValueIsFoundInTheFile(t *testing.T) {
	styles := []yaml.Style{0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}
	piece := rapid.SampledFrom([]string{"a", "turn", " ", "  ", "\n", "\n\n", "\n  b", "'", "\"", "\\", "é", "\t", "# ", ": ", "𝄞", "\u0007"})
	drawn, checked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		drawn++
		before := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "before"), "")
		after := strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "after"), "")
		value := before + "§" + after
		scalar := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: rapid.SampledFrom(styles).Draw(t, "style")}
		if rapid.Bool().Draw(t, "anchor") {
			scalar.Anchor = "here"
		}
		inner := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "key"}, scalar}}
		outer := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{inner}}
		text, err := yaml.Marshal(outer)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return // the library's writer makes what its reader refuses
		}
		n := doc.Content[0].Content[0].Content[1]
		if n.Value != value {
			return // or what it reads otherwise
		}
		checked++
		lines := strings.Split(before, "\n")
		src := newSource("a.yaml", text)
		line, column := src.within(n, len(lines), len([]rune(lines[len(lines)-1]))+1)
		at := src.offset(line, column)
		if at == len(src.text) || src.text[at] != '§' && !strings.HasPrefix(string(src.text[at:]), `\xA7`) {
			t.Fatalf("%d:%d is not the mark of\n%s", line, column, text)
		}
	})
	if 2*checked < drawn {
		t.Errorf("only %d of %d values survived the YAML library", checked, drawn)
	}
}
