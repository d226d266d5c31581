// Package completion completes command lines of the program: it has the scripts for the
// shells, and decides from the definition of the command line what may follow.
package completion

import (
	"embed"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed scripts
var scripts embed.FS

// Script returns the script that a shell loads to complete command lines, empty for an
// unknown shell. The script calls the program: PROGRAM complete -- WORD..., where the last
// word is the one under the cursor, and reads the lines of Answer.Text.
func Script(shell string) string {
	raw, err := scripts.ReadFile("scripts/harness." + shell)
	if err != nil {
		return ""
	}
	return string(raw)
}

// Kind is what an answer asks of its reader in addition to its words.
type Kind int

const (
	// Words are complete.
	Words Kind = iota
	// Files are completed by the shell, Dirs are directories only.
	Files
	Dirs
	// Runs are ids of runs, which the caller lists.
	Runs
)

// Word is a possible word with its meaning in one line.
type Word struct{ Text, Help string }

// Answer is what fits under the cursor.
type Answer struct {
	Kind  Kind
	Words []Word
	// Before is put before every word: "--output=" while a flag and its value are one word.
	Before string
	// Prefix is the common prefix of the words.
	Prefix string
	// Flags are the values that the line sets, by the name of the flag.
	Flags map[string]string
}

// Text returns the lines that the scripts read: a word and its meaning, separated by a tab,
// or :files or :dirs. Words that do not begin with Prefix are left out.
func (a Answer) Text() string {
	switch a.Kind {
	case Files:
		return ":files\n"
	case Dirs:
		return ":dirs\n"
	case Words, Runs:
	}
	var out strings.Builder
	for _, w := range a.Words {
		if strings.HasPrefix(w.Text, a.Prefix) {
			out.WriteString(a.Before + w.Text + "\t" + strings.Join(strings.Fields(w.Help), " ") + "\n")
		}
	}
	return out.String()
}

// Complete returns what fits for the last of the words, which follow the program's name.
func Complete(app *kong.Application, words []string) Answer {
	if len(words) == 0 {
		words = []string{""}
	}
	c := cursor{node: app.Node, flags: map[string]string{}}
	for _, word := range words[:len(words)-1] {
		c.pass(word)
	}
	answer := c.complete(words[len(words)-1])
	answer.Flags = c.flags
	return answer
}

// cursor is the state after some words.
type cursor struct {
	node *kong.Node
	// open is the flag whose value is the next word; nil for none.
	open *kong.Flag
	// args is the number of positional arguments of node.
	args int
	// plain reports whether a -- ended the flags.
	plain bool
	flags map[string]string
}

func (c *cursor) pass(word string) {
	switch {
	case c.open != nil:
		c.flags[c.open.Name] = word
		c.open = nil
	case c.plain:
		c.args++
	case word == "--":
		c.plain = true
	case strings.HasPrefix(word, "--"):
		name, value, given := strings.Cut(word[2:], "=")
		switch flag := c.flag(name); {
		case flag == nil:
		case given:
			c.flags[name] = value
		case !flag.IsBool():
			c.open = flag
		}
	case strings.HasPrefix(word, "-") && word != "-":
	default:
		if child := c.child(word); child != nil {
			c.node = child
			return
		}
		c.args++
	}
}

func (c *cursor) child(name string) *kong.Node {
	at := slices.IndexFunc(c.node.Children, func(n *kong.Node) bool { return n.Name == name })
	if at < 0 || c.args > 0 {
		return nil
	}
	return c.node.Children[at]
}

// flag returns the flag of a name, of this verb or of those around it; nil if there is none.
func (c *cursor) flag(name string) *kong.Flag {
	for _, group := range c.node.AllFlags(false) {
		for _, flag := range group {
			if flag.Name == name {
				return flag
			}
		}
	}
	return nil
}

func (c *cursor) complete(word string) Answer {
	if c.open != nil {
		return valuesOf(c.open, word, "")
	}
	if !c.plain && strings.HasPrefix(word, "-") {
		if name, value, given := strings.Cut(strings.TrimPrefix(word, "--"), "="); given {
			if flag := c.flag(name); flag != nil && !flag.IsBool() {
				return valuesOf(flag, value, "--"+name+"=")
			}
			return Answer{}
		}
		return Answer{Words: c.flagWords(), Prefix: word}
	}
	if verbs := verbsOf(c.node); len(verbs) > 0 && c.args == 0 {
		return Answer{Words: verbs, Prefix: word}
	}
	return c.positional(word)
}

func (c *cursor) flagWords() []Word {
	var words []Word
	for _, group := range c.node.AllFlags(true) {
		for _, flag := range group {
			words = append(words, Word{"--" + flag.Name, flag.Help})
		}
	}
	slices.SortFunc(words, func(x, y Word) int { return strings.Compare(x.Text, y.Text) })
	return words
}

func verbsOf(n *kong.Node) []Word {
	var words []Word
	for _, child := range n.Children {
		if !child.Hidden {
			words = append(words, Word{child.Name, child.Help})
		}
	}
	return words
}

// positional completes an argument by its name in the usage.
func (c *cursor) positional(word string) Answer {
	if len(c.node.Positional) == 0 {
		return Answer{}
	}
	arg := c.node.Positional[min(c.args, len(c.node.Positional)-1)]
	if c.args >= len(c.node.Positional) && !arg.IsCumulative() {
		return Answer{}
	}
	switch arg.Name {
	case "verb":
		n := c.node
		for n.Parent != nil {
			n = n.Parent
		}
		return Answer{Words: verbsOf(n), Prefix: word}
	}
	return valuesOf(&kong.Flag{Value: arg, PlaceHolder: strings.ToUpper(arg.Name)}, word, "")
}

// valuesOf completes a value by its enumeration, or by its placeholder.
func valuesOf(flag *kong.Flag, word, before string) Answer {
	answer := Answer{Prefix: word, Before: before}
	if flag.Enum != "" {
		for _, value := range flag.EnumSlice() {
			answer.Words = append(answer.Words, Word{value, ""})
		}
		return answer
	}
	switch flag.PlaceHolder {
	case "RUN":
		answer.Kind = Runs
	case "STATUS":
		for _, status := range []string{"running", "parked", "done", "stalled", "failed", "cancelled"} {
			answer.Words = append(answer.Words, Word{status, ""})
		}
	case "FILE":
		answer.Kind = Files
	case "DIR":
		answer.Kind = Dirs
	}
	return answer
}
