package narration

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// signs is a set of signs of narration in a sentence.
type signs uint64

// The signs, in the order of namesOfSigns.
const (
	signHail       signs = 1 << iota // begins as an answer does: "Sure!"
	signHand                         // hands something over: "Here is …"
	signWill                         // its writer is about to write: "Let me add …"
	signLook                         // … or to look something up
	signDid                          // its writer reports its work on a text: "I've shortened …"
	signPast                         // its writer reports what it did
	signSaved                        // names the place where it was stored
	signDone                         // declares it complete
	signOnward                       // announces more text
	signThinks                       // thinks aloud about the user
	signSorry                        // reports work that failed
	signModel                        // speaks as a model
	signGaps                         // mentions placeholders
	signEmpty                        // is a placeholder: "TODO", "see above"
	signTool                         // names a tool of the harness
	signRequest                      // mentions a request: "as you asked", "your brief"
	signGiven                        // mentions an input of the reader: "you sent"
	signProposal                     // proposes more work: "Shall I add …?"
	signPolite                       // turns to the reader as letters do, too: "Let me know"
	signAdvice                       // tells the reader what to do with a text
	signMe                           // the writer
	signYou                          // the reader
	signText                         // names a text: report, script, poem
	signPart                         // names a part by its turn: "the next section"
	signSize                         // mentions length or form
	signForm                         // names what can be changed in a text: its tone, its title
	signWhole                        // "This version …", "The query below …"
	signLetter                       // names a part of a letter as a text: "the closing of the letter"
	signVoice                        // speaks as texts of its kind do: "In this post, I will show"
	signLater                        // mentions another time, as plans and habits do
	signFinite                       // has another verb: "Saving the file took 3 s."
	signIntent                       // its writer is about to do something
	signEdit                         // names a change of a text
	signWe                           // its writer among others
	signPublic                       // turns to readers whom the writer does not know
	signBack                         // begins with a word for what precedes it: "It", "These"
	signSalutation                   // begins a letter
	signHeader                       // is the header of a letter: "Subject: …"
	signClosing                      // ends a letter
	signColon                        // ends with a colon
	signAsks                         // ends with a question mark
	signBegins                       // begins its line
	signEnds                         // ends its line
	signBrief                        // has up to five words
	signLong                         // has more than 25 words
	signFamiliar                     // has only words of the tables
	signStrange                      // has at least a third of other words
	signNames                        // has names
	signNumbers                      // has numbers
)

var namesOfSigns = []string{
	"hail", "hand", "will", "look", "did", "past", "saved", "done", "onward", "thinks", "sorry", "model", "gaps", "empty", "tool", "request", "given", "offer", "polite", "advice",
	"me", "you", "text", "part", "size", "form", "whole", "letter", "voice", "later", "finite", "intent", "edit", "we", "public", "back",
	"salutation", "header", "closing", "colon", "asks", "begins", "ends", "brief", "long", "familiar", "strange", "names", "numbers",
}

const (
	// working are signs of work on a text.
	working = signIntent | signWill | signLook | signDid | signPast | signSaved | signOnward | signThinks | signSorry | signHand | signRequest | signTool
	// neutral are signs that say nothing of narration alone.
	neutral = signWe | signEdit | signLater | signFinite | signBack | signColon | signAsks |
		signBegins | signEnds | signBrief | signLong | signFamiliar | signStrange | signNames | signNumbers
)

// facts is a set of circumstances of a line: its position, its neighbours, the rest of the text.
type facts uint64

// The facts, in the order of namesOfFacts.
const (
	atHead     facts = 1 << iota // among the first lines
	atTail                       // among the last lines
	amid                         // between other content
	alone                        // there may be no other content
	isFirst                      // is the first line
	isLast                       // is the last line
	isOwn                        // is a paragraph
	isItem                       // of a list
	isTitle                      // is a heading or a comment
	isBold                       // is all bold
	isSlot                       // is all in brackets, as a gap to fill in is
	inBrackets                   // begins with a bracket or emphasis
	isLower                      // begins with a lower-case letter or a digit
	isOpen                       // does not end as a sentence does
	isKeyed                      // begins as an entry does: "Name: …"
	isMany                       // has three sentences or more
	isMixed                      // has a sentence without a sign
	isFramed                     // is between salutation and signature
	before                       // precedes a heading, code, a list or a ruler
	after                        // follows one
	isPersonal                   // another line mentions the writer, and no work
	isReport                     // two other lines mention the writer, and work
	isAddress                    // another line addresses the reader, and mentions no work
	isLetter                     // the text is a letter
	isCommit                     // … the message of a commit
	isSpoken                     // … a conversation
	isProgram                    // … mostly code
	isTabular                    // … records of values
	isFenced                     // has fenced blocks
	isHeaded                     // has headings
	isTerse                      // has up to two lines
	isSmall                      // has up to six
)

var namesOfFacts = []string{
	"head", "tail", "amid", "alone", "first", "last", "own", "item", "title", "bold", "slot", "brackets", "lower", "open", "keyed", "many", "mixed", "framed", "before",
	"after", "personal", "report", "address", "letters", "commit", "spoken", "program", "tabular", "fenced", "headed", "terse", "small",
}

func (s signs) has(oneOf signs) bool { return s&oneOf != 0 }

// read sets the signs of each sentence.
func (l *line) read() {
	all := utterances(strings.TrimPrefix(strings.TrimPrefix(l.bare, "P.S. "), "PS: "))
	l.sentences = make([]signs, len(all))
	for n, u := range all {
		s := read().signsOf(u.words, u.lead)
		switch u.ends {
		case '?':
			s |= signAsks
		case ':':
			s |= signColon
		}
		switch words := len(u.words); {
		case words <= 5:
			s |= signBrief
		case words > 25:
			s |= signLong
		}
		switch {
		case u.unknown == 0 && u.numbers == 0:
			s |= signFamiliar
		case u.unknown > 1 && u.unknown*3 >= len(u.words):
			s |= signStrange
		}
		german := slices.ContainsFunc(u.words, func(t token) bool { return t.class&read().capitals != 0 })
		if u.names > 0 && !german {
			s |= signNames
		}
		if u.numbers > 0 {
			s |= signNumbers
		}
		if n == 0 {
			s |= signBegins
		}
		if n == len(all)-1 {
			s |= signEnds
		}
		l.sentences[n] = s
		l.signs |= s
	}
}

func (l *line) speaks() bool {
	return slices.ContainsFunc(l.sentences, func(s signs) bool { return s.has(signMe) && !s.has(working) })
}

func (l *line) addresses() bool {
	return slices.ContainsFunc(l.sentences, func(s signs) bool {
		return s.has(signVoice) || s.has(signYou) && !s.has(working|signProposal|signPolite)
	})
}

func (l *line) reports() bool {
	return slices.ContainsFunc(l.sentences, func(s signs) bool { return s.has(signMe) && s.has(working) })
}

// factsOf returns the circumstances of line n at a position.
func (d *document) factsOf(n int, where facts) facts {
	l := d.at(n)
	f := d.facts | where
	first, _ := utf8.DecodeRuneInString(l.bare)
	raw := strings.TrimSpace(l.raw)
	mine := 0
	if !l.framed && l.kind != quoted && l.kind != code {
		mine = 1
	}
	f |= when(n == 0, isFirst) | when(n == len(d.order)-1, isLast) | when(!d.sameParagraph(n) && !d.sameParagraph(n+1), isOwn) | when(l.kind == item, isItem) |
		when(l.kind == heading, isTitle) | when(len(raw) > 4 && strings.HasPrefix(raw, "**") && strings.HasSuffix(raw, "**"), isBold) |
		when(placeholder(raw), isSlot) | when(strings.ContainsRune("([*_<{", rune(raw[0])), inBrackets) | when(unicode.IsLower(first) || unicode.IsDigit(first), isLower) |
		when(!isSentence(l.bare), isOpen) | when(patterns().key.MatchString(l.bare), isKeyed) | when(len(l.sentences) > 2, isMany) |
		when(slices.ContainsFunc(l.sentences, func(s signs) bool { return s&^neutral == 0 }), isMixed) | when(l.framed, isFramed) |
		when(n+1 < len(d.order) && d.at(n+1).kind > prose, before) | when(n > 0 && d.at(n-1).kind > prose, after) |
		when(d.speaking > mine*count(l.speaks()), isPersonal) | when(d.reporting > 1+mine*count(l.reports()), isReport) |
		when(d.addressing > mine*count(l.addresses()), isAddress)
	return f
}

// score returns how much line n at a position is about the artifact and not of it: above 0 it is
// narration. It is the sum of the weights of the rules whose circumstances hold and whose signs
// one of its sentences has.
func (d *document) score(n int, where facts) int {
	l := d.at(n)
	if len(l.sentences) == 0 || l.signs&^neutral == 0 {
		return unknown
	}
	f, sum := d.factsOf(n, where), 0
	for i := range read().rules {
		r := &read().rules[i]
		if r.facts&^f != 0 || r.signs&^l.signs != 0 {
			continue
		}
		for _, s := range l.sentences {
			if r.signs&^s == 0 {
				sum += r.weight
				break
			}
		}
	}
	return sum
}

// unknown is the score of a line without any sign.
const unknown = -1000
