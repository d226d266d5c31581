package narration

import (
	"bytes"
	"embed"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The tables have one file a language, and any.tsv for all of them. A row is a class of words,
// "@name" and its words, or a sign and a phrase that gives it. Phrases are looked up by their
// first word, so the cost of reading a line does not depend on their number.
//
// A phrase is written as words between blanks. "a|b" is either word, "@made" any in that
// class, "_" any word, "*3" up to three words of any kind, a word that ends with "?" may be
// missing, "^" is the beginning of a sentence, after adverbs, and "$" its end. Commas do not
// count where no "," is named.
//
//go:embed tables
var tables embed.FS

// token is a word as phrases read it: in lower case, with a straight apostrophe.
type token struct {
	id    int // in the tables; 0 if they do not have it
	class classes
}

// classes is a set of classes of words.
type classes uint64

// element is one place of a phrase.
type element struct {
	words    []int
	class    classes
	gap      int // up to this many words of any kind, if above 0
	optional bool
	end      bool
	any      bool
}

// phrase is a row of elements and the sign that it gives.
type phrase struct {
	sign     signs
	elements []element
	start    bool
}

// rule adds its weight to the score of a line that has all of its signs in one sentence, and
// all of its circumstances.
type rule struct {
	weight int
	signs  signs
	facts  facts
}

// book has the tables: phrases by the word or the class that they start with, and rules.
type book struct {
	byWord  [][]phrase
	byClass [64][]phrase
	lexicon map[string]classes
	names   map[string]classes
	// ids numbers the words of the tables, from comma on.
	ids   map[string]int
	rules []rule
	// files, leads and endings are classes that the reader of words needs.
	files, leads, endings, past, capitals, verbs, calls classes
}

// read returns the tables. They are read when the first artifact is checked; most processes
// never check one.
var read = sync.OnceValue(func() *book {
	b := &book{byWord: make([][]phrase, comma+1), lexicon: map[string]classes{}, names: map[string]classes{}, ids: map[string]int{",": comma}}
	var rows [][2]string
	files, err := tables.ReadDir("tables")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, file := range files {
		text, err := tables.ReadFile("tables/" + file.Name())
		if err != nil {
			panic(err)
		}
		for line := range bytes.Lines(text) {
			row := strings.TrimSpace(string(line))
			first, rest, _ := strings.Cut(row, "\t")
			class, isClass := strings.CutPrefix(first, "@")
			switch {
			case row == "" || row[0] == '#':
			case file.Name() == "rules.tsv":
				b.rules = append(b.rules, newRule(first, rest))
			case isClass:
				for word := range strings.FieldsSeq(rest) {
					b.lexicon[word] |= b.class(class)
					b.id(word)
				}
			default:
				rows = append(rows, [2]string{first, rest})
			}
		}
	}
	b.files, b.leads, b.endings, b.past, b.capitals = b.class("file"), b.class("lead"), b.class("ending"), b.class("past"), b.class("capitals")
	b.verbs, b.calls = b.class("toolverb"), b.class("call")
	for _, row := range rows {
		b.add(signNamed(row[0]), row[1])
	}
	return b
})

// comma is the number of a comma.
const comma = 1

// id returns the number of a word.
func (b *book) id(word string) int {
	if b.ids[word] == 0 {
		b.ids[word] = len(b.byWord)
		b.byWord = append(b.byWord, nil)
	}
	return b.ids[word]
}

// class returns the class with a name.
func (b *book) class(name string) classes {
	if b.names[name] == 0 {
		b.names[name] = 1 << len(b.names)
	}
	return b.names[name]
}

// newRule reads a row of rules.tsv: its weight, then signs and circumstances.
func newRule(weight, names string) rule {
	n, err := strconv.Atoi(weight)
	if err != nil {
		panic(err)
	}
	r := rule{weight: n}
	for name := range strings.FieldsSeq(names) {
		if at := slices.Index(namesOfFacts, name); at >= 0 {
			r.facts |= 1 << at
		} else {
			r.signs |= signNamed(name)
		}
	}
	return r
}

func signNamed(name string) signs {
	at := slices.Index(namesOfSigns, name)
	if at < 0 {
		panic("no sign is named " + name)
	}
	return 1 << at
}

// add adds a phrase for each way to begin it.
func (b *book) add(sign signs, text string) {
	p := phrase{sign: sign}
	for part := range strings.FieldsSeq(text) {
		if part == "^" {
			p.start = true
			continue
		}
		p.elements = append(p.elements, b.element(part))
	}
	for ; ; p.elements = p.elements[1:] {
		first := p.elements[0]
		first.optional = false
		q := p
		q.elements = append([]element{first}, p.elements[1:]...)
		for _, word := range first.words {
			b.byWord[word] = append(b.byWord[word], q)
		}
		for class := first.class; class != 0; class &= class - 1 {
			at := bits.TrailingZeros64(uint64(class))
			b.byClass[at] = append(b.byClass[at], q)
		}
		if !p.elements[0].optional {
			return
		}
	}
}

func (b *book) element(part string) element {
	e := element{}
	if strings.HasSuffix(part, "?") && part != "?" {
		e.optional, part = true, part[:len(part)-1]
	}
	if part[0] == '*' {
		e.gap = int(part[1] - '0')
		return e
	}
	for word := range strings.SplitSeq(part, "|") {
		switch name, isClass := strings.CutPrefix(word, "@"); {
		case word == "$":
			e.end = true
		case word == "_":
			e.any = true
		case isClass && b.names[name] == 0:
			panic("no class of words is named " + name)
		case isClass:
			e.class |= b.names[name]
		default:
			e.words = append(e.words, b.id(word))
		}
	}
	return e
}

// signsOf returns the signs of a sentence, whose first lead words only lead to its content.
func (b *book) signsOf(sentence []token, lead int) signs {
	var found signs
	try := func(phrases []phrase, at int) {
		for i := range phrases {
			p := &phrases[i]
			if found&p.sign == 0 && (!p.start || at <= lead) && matches(p.elements, sentence[at:]) {
				found |= p.sign
			}
		}
	}
	for at, t := range sentence {
		try(b.byWord[t.id], at)
		for class := t.class; class != 0; class &= class - 1 {
			try(b.byClass[bits.TrailingZeros64(uint64(class))], at)
		}
	}
	return found
}

// matches reports whether a sentence begins with a phrase.
func matches(elements []element, sentence []token) bool {
	if len(elements) == 0 {
		return true
	}
	e := &elements[0]
	if e.gap > 0 {
		for n := 0; n <= e.gap && n <= len(sentence); n++ {
			if matches(elements[1:], sentence[n:]) {
				return true
			}
		}
		return false
	}
	if e.optional && matches(elements[1:], sentence) {
		return true
	}
	for len(sentence) > 0 && sentence[0].id == comma && !slices.Contains(e.words, comma) {
		sentence = sentence[1:]
	}
	if e.end && len(sentence) == 0 {
		return true
	}
	return len(sentence) > 0 && (e.any || sentence[0].class&e.class != 0 || slices.Contains(e.words, sentence[0].id)) && matches(elements[1:], sentence[1:])
}
