package mcptool

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxFound bounds the result of a search, in bytes, and maxListed the tools that it describes.
const (
	maxFound  = 20_000
	maxListed = 12
)

// Index are the tools of a run, for searches and calls. It is immutable.
type Index struct {
	tools  []*harnessv1.McpTool
	byName map[string]*harnessv1.McpTool
}

func NewIndex(tools *harnessv1.McpTools) *Index {
	x := &Index{tools: tools.GetTools(), byName: map[string]*harnessv1.McpTool{}}
	for _, t := range x.tools {
		x.byName[t.GetSpec().GetName()] = t
	}
	return x
}

// Lookup returns the tool that models call by a name; nil if there is none. A nil Index has no
// tools.
func (x *Index) Lookup(name string) *harnessv1.McpTool {
	if x == nil {
		return nil
	}
	return x.byName[name]
}

// Shown returns the tools that a model is shown, and those that only find_tools lists. With
// autonomous set, none is among them whose definition was not approved when the run got it. One
// that changes later stays: its calls are denied, and the requests begin as before.
func (x *Index) Shown(s *harnessv1.McpState, autonomous bool) (shown, hidden []*harnessv1.ToolSpec) {
	if x == nil {
		return nil, nil
	}
	for _, t := range x.tools {
		switch {
		case autonomous && t.GetUnapproved():
		case s.GetHidden() || t.GetLate():
			hidden = append(hidden, t.GetSpec())
		default:
			shown = append(shown, t.GetSpec())
		}
	}
	return shown, hidden
}

// Find returns what find_tools answers: the tools that fit a query best, each with its schema,
// and servers that are not ready. It depends on its arguments alone.
func (x *Index) Find(query string, servers []*harnessv1.McpServerStatus, usable func(*harnessv1.McpTool) bool) string {
	words := wordsOf(query)
	type match struct {
		tool  *harnessv1.McpTool
		score int
	}
	var matches []match
	for _, t := range x.tools {
		if t.GetGone() || !usable(t) {
			continue
		}
		if s := score(t, words); s > 0 || len(words) == 0 {
			matches = append(matches, match{t, s})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int {
		return cmp.Or(b.score-a.score, cmp.Compare(a.tool.GetSpec().GetName(), b.tool.GetSpec().GetName()))
	})
	var b strings.Builder
	if len(matches) == 0 {
		b.WriteString("No tool fits. Try other words, or an empty query for the names of all tools.\n")
	} else {
		b.WriteString("Call one of these with call_tool, with its name and arguments that fit its schema.\n")
	}
	left := 0
	for i, m := range matches {
		text := brief(m.tool)
		if len(words) > 0 && i < maxListed {
			text = whole(m.tool)
		}
		if b.Len()+len(text) > maxFound-1000 {
			left++
			continue
		}
		b.WriteString(text)
	}
	if left > 0 {
		b.WriteString("\n… and more; name what you look for more exactly.\n")
	}
	for _, s := range servers {
		if s.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY {
			b.WriteString("\n" + notReady(s))
		}
	}
	return content.Cut(strings.TrimSpace(b.String()), maxFound)
}

// notReady says, for a model, that a server is not ready.
func notReady(s *harnessv1.McpServerStatus) string {
	why := s.GetMessage()
	if why != "" {
		why = ": " + why
	}
	switch s.GetState() {
	case harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN:
		return "The server " + s.GetServer() + " cannot be used until a person has signed in" + why
	case harnessv1.McpServerState_MCP_SERVER_STATE_FAILED:
		return "The server " + s.GetServer() + " cannot be used" + why
	default:
		return "The server " + s.GetServer() + " is starting; its tools come later" + why
	}
}

func brief(t *harnessv1.McpTool) string {
	return "\n" + t.GetSpec().GetName() + ": " + content.Line(t.GetSpec().GetDescription(), 120)
}

func whole(t *harnessv1.McpTool) string {
	return "\n" + t.GetSpec().GetName() + "\n" + content.Cut(t.GetSpec().GetDescription(), 1000) + "\nschema: " + content.Cut(t.GetSpec().GetParametersSchema(), 4000) + "\n"
}

// score counts how well a tool fits the words of a query.
func score(t *harnessv1.McpTool, words []string) int {
	name, text := wordsOf(t.GetSpec().GetName()), wordsOf(t.GetSpec().GetDescription())
	total := 0
	for _, w := range words {
		switch {
		case slices.Contains(name, w):
			total += 6
		case slices.ContainsFunc(name, func(n string) bool { return related(n, w) }):
			total += 4
		}
		switch {
		case slices.Contains(text, w):
			total += 2
		case slices.ContainsFunc(text, func(n string) bool { return related(n, w) }):
			total++
		}
	}
	return total
}

// related reports whether one word begins with the other, as in issue and issues, or a name has the
// word in it, as in heapsnapshot and snapshot.
func related(name, word string) bool {
	return min(len(name), len(word)) >= 3 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name)) ||
		len(word) >= 4 && strings.Contains(name, word)
}

// wordsOf returns the words of a text in lower case, also those that names join as in getUser.
func wordsOf(text string) []string {
	var b strings.Builder
	lower := false
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			if lower {
				b.WriteByte(' ')
			}
			b.WriteRune(unicode.ToLower(r))
			lower = false
			continue
		case unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
	}
	return strings.Fields(b.String())
}
