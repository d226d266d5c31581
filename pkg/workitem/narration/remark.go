package narration

import (
	"strings"
)

// class is what a line that may be narration does.
type class int

const (
	none         class = iota
	intention          // announces the next step of its writer: "Let me write the report."
	introduction       // hands the artifact over: "Here is the report:"
	account            // reports finished work: "I've saved the report."
	invitation         // turns to the reader: "Let me know if you want changes."
	explanation        // explains the artifact: "This script reads …"
)

// remark is a line that may be narration.
type remark struct {
	class class
	// strong is true if it is about an artifact; a weak one might be content of a
	// text that speaks in the first person.
	strong bool
	// self is true if it can only be about this artifact: it names a file, a work
	// item, a request.
	self bool
	// spoken is true if its writer is its subject: "I have", "Let me".
	spoken bool
	// edge is true if it counts only at the edges of an artifact.
	edge bool
	// own is true if an invitation mentions its writer: "Let me know", not "Feel free".
	own bool
	// inline is true if content follows in the same line.
	inline bool
}

// Where a line is.
type position int

const (
	atHead position = iota
	atTail
	between
)

// accept reports whether line n is narration its position.
func (d *document) accept(n int, where position) bool {
	l := d.at(n)
	if where != between && d.isAboutArtifact(n, where) {
		return true
	}
	r := l.remark
	if l.kind != prose || l.protected || r.class == none || r.inline {
		return d.explains(n, where)
	}
	impersonal := !d.personal || r.self
	switch {
	case where == between:
		return (r.class == intention || r.class == account && !r.edge && (r.strong || d.at(n).says.has(signRequest|signGiven|signOnward|signPart|signText|signYou))) &&
			r.spoken && impersonal && d.alone(n)
	case r.class == explanation:
		return d.explains(n, where)
	case r.class == introduction:
		return where == atHead && (r.strong || !d.personal && d.alone(n))
	case r.class == invitation:
		if where == atHead {
			return r.spoken && impersonal && d.alone(n) && proposesWork.MatchString(l.plain)
		}
		if d.personal && r.spoken {
			return r.self
		}
		return r.self || r.strong && (!d.personal || !d.addressing) || d.alone(n) && (!d.addressing || r.own && !d.personal)
	default:
		return impersonal && (r.strong || d.alone(n))
	}
}

// explains reports whether line n is a remark on a program: a sentence before or after it
// that is no comment.
func (d *document) explains(n int, where position) bool {
	l := d.at(n)
	if l.kind != prose || l.protected || where == between || d.headings > 0 && d.fences > 0 {
		return false
	}
	if where == atTail && d.fences == 1 && d.opensWithCode() {
		return l.remark.class == explanation
	}
	return d.program && d.alone(n) && sentence(l.bare) && len(strings.Fields(l.bare)) > 3 && aboutProgram.MatchString(l.plain) && !strings.ContainsAny(l.bare, ";{}=")
}

// opensWithCode reports whether nothing but narration precedes the first code.
func (d *document) opensWithCode() bool {
	for n := range d.order {
		switch l := d.at(n); {
		case l.kind == code:
			return true
		case l.remark.class == none:
			return false
		}
	}
	return false
}

// lastSentences is the number of sentences at the end of a line are looked at.
const lastSentences = 4

// mixed reports whether line n of the content from line from to line to holds content and
// narration.
func (d *document) mixed(n, from, to int) bool {
	l := d.at(n)
	if l.kind != prose || l.protected {
		return false
	}
	if n == from && l.remark.class == introduction && l.remark.inline {
		return true
	}
	if n != to-1 || n != len(d.order)-1 || l.remark.class != none {
		return false
	}
	sentences := sentenceEnd.Split(speech.ReplaceAllString(l.plain[max(0, len(l.plain)-2*maxRemark):], `""`), -1)
	for _, s := range sentences[max(1, len(sentences)-lastSentences):] {
		if r := remarkOf(s); r.strong && (r.class == invitation || r.class == account) && (!d.personal || r.self) {
			return true
		}
	}
	return false
}

var sentenceEnd = lazily(`[.!?]\s+`)

// remarkOf reads a line in lower case.
func remarkOf(text string) remark {
	if len(text) > maxRemark || text == "" || attributed.MatchString(text) && !asYouSaid.MatchString(text) {
		return remark{}
	}
	rest, hailed := leadIn(text)
	r := remark{self: ownWords.MatchString(rest)}
	if m := stepWord.FindStringSubmatchIndex(rest); m != nil {
		rest = rest[m[2]:]
	}
	r.spoken = strings.HasPrefix(rest, "i ") || strings.HasPrefix(rest, "i'") || strings.HasPrefix(rest, "let me ") && !strings.HasPrefix(rest, "let me know")
	switch {
	case rest == "":
		if hailed && !strings.HasPrefix(text, "thank") {
			return remark{class: introduction, strong: true}
		}
		return remark{}
	case selfIntention.MatchString(rest):
		r.class, r.strong, r.self = intention, true, true
	case plainIntention.MatchString(rest):
		r.class, r.strong, r.self = intention, true, true
	case updateNow.MatchString(rest) && !later.MatchString(rest), makeIntention.MatchString(rest) && !later.MatchString(rest):
		r.class, r.strong = intention, true
	case lookIntention.MatchString(rest) && !later.MatchString(rest):
		r.class = intention
	case gerund.MatchString(rest) && (r.self || rightNow.MatchString(rest)) && !finite.MatchString(rest):
		r.class, r.strong = intention, true
	case madeAccount.MatchString(rest):
		r.class, r.strong = account, true
	case smallAccount.MatchString(rest), doneWith.MatchString(rest), readyNow.MatchString(rest), overNow.MatchString(rest):
		r.class = account
		r.strong = r.self && !smallAccount.MatchString(rest) || doneWith.MatchString(rest)
	case lookAccount.MatchString(rest) && !found.MatchString(rest), weakPassive.MatchString(rest):
		r.class = account
	case passiveAccount.MatchString(rest), knownEnough.MatchString(rest), taskDone.MatchString(rest):
		r.class, r.strong, r.self = account, true, true
	case savedTo.MatchString(rest) && (r.self || len(strings.Fields(rest)) < 4):
		r.class, r.strong = account, true
	case listsChanges.MatchString(rest):
		r.class, r.strong = account, true
	case handsOver.MatchString(rest), followingWhole.MatchString(rest), requested.MatchString(text):
		r.class, r.strong = introduction, true
	case hereIs.MatchString(rest):
		r.class = introduction
		m := hereIs.FindStringSubmatch(rest)
		noun, colon := artifactNoun.MatchString(m[1]), strings.HasSuffix(rest, ":")
		part := partNoun.MatchString(m[1])
		r.strong = noun && (colon || definiteStart.MatchString(m[1]) && !part || r.self) || hailed
		if !r.strong && (!noun || part) && (question.MatchString(m[1]) || !colon) {
			return remark{}
		}
	case thisIs.MatchString(rest):
		r.class = introduction
	case following.MatchString(rest) && strings.HasSuffix(rest, ":") || following.MatchString(rest) && r.self, followingThis.MatchString(rest):
		r.class = introduction
	case revisionRequest.MatchString(rest) && !toPublic.MatchString(rest):
		r.class, r.strong, r.self = invitation, true, ofChanges.MatchString(rest)
	case plainInvitation.MatchString(rest) && !toPublic.MatchString(rest):
		r.class, r.self, r.own, r.spoken = invitation, false, ofMe.MatchString(rest), false
	case ownVoice.MatchString(rest) && !later.MatchString(rest) && !found.MatchString(rest):
		r.class, r.edge = account, true
	case describes.MatchString(rest):
		r.class = explanation
	default:
		return remark{}
	}
	if r.class == introduction {
		if at := strings.Index(rest, ": "); at > 0 && len(strings.Fields(rest[at:])) > 3 {
			r.inline = true
		}
	}
	return r
}

// harnessTool is the name of a tool of the harness. Only the work on an artifact mentions one.
var harnessTool = lazily(`\b(?:work_item_(?:add|update|list|set_artifact|flag_revision)|(?:work|task)_complete|read_artifact|ask_user)\b`)

// namesTool reports whether a line names a tool of the harness outside of code and quotations.
func namesTool(raw string) bool {
	return strings.Contains(raw, "_") && !coded(raw) && harnessTool.MatchString(speech.ReplaceAllString(raw, ""))
}

// lineRemark reads a line sentence by sentence. One whose first sentence only points
// back, "You can run it with any file.", is what the sentences after it are.
func lineRemark(plain string) remark {
	if len(plain) > 2*maxRemark {
		plain = plain[:maxRemark] + plain[len(plain)-maxRemark:] // its ends tell
	}
	plain = speech.ReplaceAllString(plain, `""`)
	r := remarkOf(plain)
	if strings.HasSuffix(plain, ",") {
		return remark{} // of a verse, or of a sentence that continues in the next line
	}
	ends := sentenceEnd.FindAllStringIndex(plain, -1)
	if r.class != none || len(ends) == 0 {
		return r
	}
	r = remarkOf(plain[:ends[0][0]+1])
	if r.class != none && r.class != explanation && (r.strong || r.spoken || r.class == invitation) {
		return r
	}
	_, hailed := leadIn(plain)
	if r.class == none && !hailed && !anaphor.MatchString(plain) && !secondPerson.MatchString(plain[:ends[0][0]]) && !strings.HasPrefix(plain, "let's ") {
		return remark{}
	}
	for _, end := range ends[max(0, len(ends)-lastSentences):] {
		if r = remarkOf(plain[end[1]:]); hailed && r.class != none {
			return r
		}
		if (r.strong || r.self) && (r.class == invitation || r.class == account || r.class == intention) || r.class == intention && r.spoken && strings.HasPrefix(plain, "let's ") {
			return r
		}
	}
	return remark{}
}

// maxRemark is how long a line of narration may be, in bytes: a longer one holds
// content.
const maxRemark = 600

// leadIn removes the introduction of a sentence: "Sure! ", "Based on the files, ". hailed
// is true if the sentence starts like an answer.
func leadIn(text string) (rest string, hailed bool) {
	for {
		if at := hail.FindString(text); at != "" {
			text, hailed = strings.TrimSpace(text[len(at):]), true
			continue
		}
		if at := noteWord.FindString(text); at != "" {
			text = text[len(at):]
			continue
		}
		if m := basis.FindStringSubmatchIndex(text); m != nil {
			text = text[m[2]:]
			continue
		}
		return text, hailed
	}
}
