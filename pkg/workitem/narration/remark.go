package narration

import (
	"strings"
)

// Where a line is.
type position int

const (
	atHead position = iota
	atTail
)

// accept reports whether line n is narration at its position.
func (d *document) accept(n int, where position) bool {
	return (d.isAboutArtifact(n, where) || d.explains(n, where)) && !d.inline(n)
}

// explains reports whether line n is a remark on a program: a sentence before or after it
// that is no comment.
func (d *document) explains(n int, where position) bool {
	l := d.at(n)
	if l.kind != prose || l.protected || d.headings > 0 && d.fences > 0 {
		return false
	}
	if where == atTail && d.fences == 1 && d.opensWithCode() {
		return describes.matchString(l.plain)
	}
	return d.program && d.alone(n) && sentence(l.bare) && len(strings.Fields(l.bare)) > 3 && aboutProgram.matchString(l.plain) && !strings.ContainsAny(l.bare, ";{}=")
}

// opensWithCode reports whether nothing but narration precedes the first code.
func (d *document) opensWithCode() bool {
	for n := range d.order {
		switch l := d.at(n); {
		case l.kind == code:
			return true
		case l.says.weight < likely:
			return false
		}
	}
	return false
}

// lastSentences is the number of sentences at the end of a line that are read.
const lastSentences = 4

// mixed reports whether line n of the content from line from to line to holds content and
// narration.
func (d *document) mixed(n, from, to int) bool {
	l := d.at(n)
	if l.kind != prose || l.protected {
		return false
	}
	if n == from && d.inline(n) {
		return true
	}
	if n != to-1 || !d.last(n) || d.marked(n) && l.says.opens {
		return false
	}
	end := l.bare[max(0, len(l.bare)-2*maxRemark):]
	if toPublic.matchString(strings.ToLower(end)) {
		return false
	}
	sentences := sentenceEnd.split(end, -1)
	for _, s := range sentences[max(1, len(sentences)-lastSentences):] {
		if says := testify(s); says.weight == certain && says.has(signProposal|signDid|signSaved) && !d.personal {
			return true
		}
	}
	return false
}

// inline reports whether line n hands content over that follows in the same line.
func (d *document) inline(n int) bool {
	bare := d.at(n).bare
	at := strings.Index(bare, ": ")
	if at < 0 || len(strings.Fields(bare[at:])) < 4 {
		return false
	}
	says := testify(bare[:at+1])
	return says.opens && says.has(signHand) && says.has(signText)
}

// last reports whether line n is the last one.
func (d *document) last(n int) bool { return n == len(d.order)-1 }

var sentenceEnd = lazily(`[.!?]\s+`)

// maxRemark is how long a line of narration may be, in bytes: a longer one holds
// content.
const maxRemark = 600

var (
	noteWord = lazily(`^(?:(?:please )?note(?: that|:|,)|fyi[:,]?|(?:hinweis|anmerkung|remarque|nota|nb|n\.b\.|edit|caveat|disclaimer) ?:)\s*`)
	// anaphor begins a sentence after narration that is about the artifact.
	anaphor = lazily(`^(?:it|this|that|that's|they|these|each|both|all (?:of|sections|tests|the)|the (?:report|document|file|script|summary|code|draft|artifact)|you can|i|i've|i'll|i'm|i'd|if you|let me|please|feel free|happy to|just|would you|hope|thanks|thank you)\b`)
	// toPublic turns to readers whom the writer does not know.
	toPublic = lazily(`\b(?:comments?|pull request|repository|newsletter|our|us|office)\b|^feel free to (?:open|contact|connect|contribute|join|fork|submit|report|call|visit|drop|file|email|stop)\b|\b(?:open an issue|to contribute)\b`)
	// describes begins a sentence about a program.
	describes    = lazily(`^(?:this|the|the above) (?:above )?(?:\S+ )?(?:code|script|function|program|query|implementation|class|component|module|config|configuration|dockerfile|workflow|schema|solution|version|snippet|file|test|tests|regex|pipeline|manifest)\b`)
	aboutProgram = lazily(`^(?:this|the|it|you can|run|to (?:run|use)|note|here|below|simply|make sure|i|i've|let me|the above|key|both|all|save|let's|first|now|next|replace|change|use|store|copy|put|place|call)\b`)
)
