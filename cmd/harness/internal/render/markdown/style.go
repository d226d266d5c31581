package markdown

import (
	"charm.land/glamour/v2/ansi"
	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/styles"
)

// theme is the name under which the colours of code are known. They are the sixteen
// that the user's terminal has its own idea of, so that they can be read on light
// and on dark ground.
const theme = "harnessmesh"

// formatter writes those sixteen.
const formatter = "terminal16"

func init() {
	styles.Register(chroma.MustNewStyle(theme, chroma.StyleEntries{
		chroma.Text:            "",
		chroma.Comment:         "#ansidarkgray",
		chroma.Keyword:         "#ansipurple",
		chroma.KeywordType:     "#ansiteal",
		chroma.NameBuiltin:     "#ansiteal",
		chroma.NameFunction:    "#ansidarkblue",
		chroma.NameTag:         "#ansidarkblue",
		chroma.NameAttribute:   "#ansiteal",
		chroma.LiteralNumber:   "#ansiteal",
		chroma.LiteralString:   "#ansidarkgreen",
		chroma.GenericDeleted:  "#ansidarkred",
		chroma.GenericInserted: "#ansidarkgreen",
		chroma.GenericHeading:  "bold",
	}))
}

// style is a look in the words of the library. Without colour the marks of Markdown
// itself stay.
func style(look Look) ansi.StyleConfig {
	mark := func(utf8, ascii string) string {
		if look.UTF8 {
			return utf8
		}
		return ascii
	}
	s := ansi.StyleConfig{
		BlockQuote:            ansi.StyleBlock{Indent: ptr(uint(1)), IndentToken: ptr(mark("│ ", "| "))},
		List:                  ansi.StyleList{LevelIndent: 2},
		HorizontalRule:        ansi.StylePrimitive{Format: "\n" + mark("────────", "--------") + "\n"},
		Item:                  ansi.StylePrimitive{BlockPrefix: mark("• ", "* ")},
		Enumeration:           ansi.StylePrimitive{BlockPrefix: ". "},
		Task:                  ansi.StyleTask{Ticked: mark("✓ ", "[x] "), Unticked: mark("○ ", "[ ] ")},
		CodeBlock:             ansi.StyleCodeBlock{StyleBlock: ansi.StyleBlock{Margin: ptr(uint(2))}},
		ImageText:             ansi.StylePrimitive{Format: "{{.text}}"},
		DefinitionDescription: ansi.StylePrimitive{BlockPrefix: "\n  "},
		Table:                 ansi.StyleTable{CenterSeparator: ptr(mark("┼", "+")), ColumnSeparator: ptr(mark("│", "|")), RowSeparator: ptr(mark("─", "-"))},
	}
	for i, h := range []*ansi.StyleBlock{&s.H1, &s.H2, &s.H3, &s.H4, &s.H5, &s.H6} {
		h.Prefix = "######"[:i+1] + " "
	}
	if !look.Colour {
		s.Code = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "`", Suffix: "`"}}
		s.Emph = ansi.StylePrimitive{BlockPrefix: "*", BlockSuffix: "*"}
		s.Strong = ansi.StylePrimitive{BlockPrefix: "**", BlockSuffix: "**"}
		s.Strikethrough = ansi.StylePrimitive{BlockPrefix: "~~", BlockSuffix: "~~"}
		return s
	}
	for _, h := range []*ansi.StyleBlock{&s.H1, &s.H2} {
		h.Prefix = ""
		h.Underline = ptr(true)
	}
	s.Heading = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Bold: ptr(true), Color: ptr("4")}}
	s.BlockQuote.Faint = ptr(true)
	s.Code = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Color: ptr("6")}}
	s.CodeBlock.Theme = theme
	s.Emph.Italic, s.Strong.Bold, s.Strikethrough.CrossedOut = ptr(true), ptr(true), ptr(true)
	s.HorizontalRule.Faint = ptr(true)
	s.Link = ansi.StylePrimitive{Color: ptr("4"), Underline: ptr(true)}
	s.LinkText = ansi.StylePrimitive{Bold: ptr(true)}
	return s
}

func ptr[T any](v T) *T { return &v }
