package narration

import (
	"math/bits"
	"slices"
	"strings"
)

// The signs of narration are phrases: sequences of words and of classes of words. They
// are read from tables and looked up by their first word, so the cost of reading a line
// does not depend on their number.
//
// A phrase is written as words between blanks. "a|b" is either word, "@made" matches
// that class, "*3" stands for up to three words of any kind, a word that ends with
// "?" may be missing, "^" is the beginning of a sentence, after adverbs, and "$" its
// end. Commas do not count.

// token is a word as phrases read it: in lower case, without an apostrophe's variants.
type token struct {
	text  string
	class classes
}

// classes is a set of classes of words.
type classes uint64

// element is one place of a phrase.
type element struct {
	words    []string
	class    classes
	gap      int // this many words of any kind, when above 0
	optional bool
	end      bool
}

// phrase is a row of elements and the sign that it gives.
type phrase struct {
	sign     signs
	elements []element
	start    bool
}

// phrasebook has phrases by the word or the class that they start with.
type phrasebook struct {
	byWord  map[string][]phrase
	byClass [64][]phrase
	lexicon map[string]classes
	names   map[string]classes
}

// newPhrasebook reads classes of words, by name, and phrases, by the sign they give.
func newPhrasebook(words map[string]string, tables ...map[signs][]string) *phrasebook {
	b := &phrasebook{byWord: map[string][]phrase{}, lexicon: map[string]classes{}, names: map[string]classes{}}
	for name, list := range words {
		class := classes(1) << len(b.names)
		b.names[name] = class
		for word := range strings.FieldsSeq(list) {
			b.lexicon[word] |= class
		}
	}
	for _, table := range tables {
		for sign, texts := range table {
			for _, text := range texts {
				b.add(sign, text)
			}
		}
	}
	return b
}

func (b *phrasebook) add(sign signs, text string) {
	p := phrase{sign: sign}
	for part := range strings.FieldsSeq(text) {
		e := element{}
		if part == "^" {
			p.start = true
			continue
		}
		if strings.HasSuffix(part, "?") && part != "?" {
			e.optional, part = true, part[:len(part)-1]
		}
		if part[0] == '*' {
			e.gap = int(part[1] - '0')
		} else {
			for word := range strings.SplitSeq(part, "|") {
				if word == "$" {
					e.end = true
				} else if name, isClass := strings.CutPrefix(word, "@"); isClass {
					if b.names[name] == 0 {
						panic("no class of words is named " + name)
					}
					e.class |= b.names[name]
				} else {
					e.words = append(e.words, word)
				}
			}
		}
		p.elements = append(p.elements, e)
	}
	// Where the first word may be missing, it begins with the second one as well.
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

// read is what signs a sentence gives; lead is how many of its first words only lead
// to what it says.
func (b *phrasebook) read(sentence []token, lead int) signs {
	var found signs
	for at, t := range sentence {
		for _, p := range b.byWord[t.text] {
			if found&p.sign != p.sign && (!p.start || at <= lead) && matches(p.elements, sentence[at:]) {
				found |= p.sign
			}
		}
		for class := t.class; class != 0; class &= class - 1 {
			for _, p := range b.byClass[bits.TrailingZeros64(uint64(class))] {
				if found&p.sign != p.sign && (!p.start || at <= lead) && matches(p.elements, sentence[at:]) {
					found |= p.sign
				}
			}
		}
	}
	return found
}

// matches reports whether a sentence begins with a phrase.
func matches(elements []element, sentence []token) bool {
	if len(elements) == 0 {
		return true
	}
	e := elements[0]
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
	for len(sentence) > 0 && sentence[0].text == "," && !slices.Contains(e.words, ",") {
		sentence = sentence[1:]
	}
	if e.end && len(sentence) == 0 {
		return true
	}
	return len(sentence) > 0 && (sentence[0].class&e.class != 0 || slices.Contains(e.words, sentence[0].text)) && matches(elements[1:], sentence[1:])
}
