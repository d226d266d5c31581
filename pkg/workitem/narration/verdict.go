package narration

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// prefaced is the number of lines before the artifact proper are narration: all of them
// when one is sure enough.
func (d *document) prefaced() int {
	lines, need := d.preface()
	for n := range lines {
		if says := d.at(n).says; says.weight >= need && (need == possible || says.weight == certain || says.has(signColon)) {
			return lines
		}
	}
	return 0
}

// isAboutArtifact reports whether line n at the head or the tail is about the artifact.
func (d *document) isAboutArtifact(n int, where position) bool {
	l := d.at(n)
	says := l.says
	if l.kind != prose || l.protected || says.weight == nothing || !d.stated(n) {
		return false
	}
	switch {
	case d.program || d.tabular:
		return d.natural(n) && d.alone(n) && (where == atHead && says.has(ofProgram) || says.has(signMe|signYou) || says.weight >= likely && says.has(ofProgram))
	case where == atTail && d.signedBefore(n):
		return says.weight >= likely || says.has(signMe|signWhole|signHail)
	case where == atTail && d.ruledBefore(n) && !d.personal:
		return says.weight >= likely
	case !says.opens, says.own && !says.has(signRequest|signProposal|signHail):
		return false
	case d.personal:
		return says.weight == certain && d.isAboutForm(n, where)
	case says.weight == certain:
		return where == atHead || !d.addressing || d.alone(n)
	case says.weight == possible || !d.alone(n):
		return false
	case where == atHead:
		return says.signs.fits(likelyHead)
	case d.addressing:
		return says.signs.fits(likelyTail[:1])
	}
	return says.signs.fits(likelyTail) || says.has(signSaved|signHail) && !says.has(signYou)
}

// ofProgram are signs of a sentence about a program or a table.
const ofProgram = signRequest | signWhole | signSaved | signDone | signHand | signHail | signModel | signGaps | signProposal

// What a likely line has to say at the edges of a text that does not say I.
var (
	likelyHead = [][]signs{{signRequest}, {signDid | signWill | signHand | signLook, signMe}}
	likelyTail = [][]signs{
		{signDid | signRequest | signSaved, signMe},
		{signModel | signDone, signMe},
		{signProposal | signPolite | signGaps, signMe | signYou},
		{signRequest, signDid | signDone | signSize},
	}
)

// isAboutForm reports whether line n is about the artifact as a text. Content in the
// first person is not.
func (d *document) isAboutForm(n int, where position) bool {
	if says := d.at(n).says; where == atTail {
		return d.alone(n) && says.has(signProposal|signRequest|signDone) && says.has(signForm|signSize|signOnward) && !says.has(signWill)
	} else {
		return says.has(signColon) && says.has(signHand|signDid|signWill) && says.has(signText)
	}
}

// stated reports whether line n is a statement as people write it, and no verse, record,
// entry or title.
func (d *document) stated(n int) bool {
	l := d.at(n)
	if d.boldTitle(n) {
		return !l.says.has(signAsks) && d.sameParagraph(n+1) && d.at(n+1).kind == item
	}
	first, _ := utf8.DecodeRuneInString(l.bare)
	if unicode.IsLower(first) || unicode.IsDigit(first) || strings.HasSuffix(l.bare, ",") || keyed.MatchString(l.bare) && !noteWord.MatchString(l.plain) || strings.HasPrefix(l.raw, "**") {
		return false
	}
	return sentence(l.bare) || d.sameParagraph(n+1) && len(l.bare) > 40
}

// boldTitle reports whether all of line n is in bold.
func (d *document) boldTitle(n int) bool {
	raw := strings.TrimSpace(d.at(n).raw)
	return len(raw) > 4 && strings.HasPrefix(raw, "**") && strings.HasSuffix(raw, "**")
}

// keyed is an entry of a configuration, a dictionary or a conversation.
var keyed = lazily(`^[\p{L}_][\p{L}_.-]*: `)

// signedBefore reports whether line n follows the signature of a letter.
func (d *document) signedBefore(n int) bool {
	for m := n - 1; m >= 0; m-- {
		if d.at(m).protected {
			return true
		}
		if d.at(m).kind != rule && d.at(m).kind != prose {
			return false
		}
	}
	return false
}

// ruledBefore reports whether a rule sets line n and what follows it apart.
func (d *document) ruledBefore(n int) bool {
	for m := n - 1; m > 0 && m >= len(d.order)-window; m-- {
		if d.at(m).kind == rule {
			return true
		}
	}
	return false
}

// interrupts reports whether line n, amid the content, is about the work on it.
func (d *document) interrupts(n int) bool {
	l := d.at(n)
	says := l.says
	switch {
	case n == 0, n == len(d.order)-1, l.kind != prose, l.inText, says.weight < likely, !d.stated(n):
		return false
	case !says.opens && !says.signs.fits([][]signs{{signWill | signOnward, signGiven | signRequest | signPart | signOnward}}):
		return false
	case d.program || d.tabular:
		return d.natural(n) && (d.tabular || !d.sameParagraph(n)) && says.has(works|signHand|signRequest)
	case !d.alone(n):
		return false
	case l.protected:
		return says.has(signLetter) && says.has(signWill|signDid)
	case d.fences > 1 && d.headings == 0 && d.at(n-1).kind == code && d.at(n+1).kind == code:
		return says.has(signMe) && says.has(works|signHand)
	case d.personal:
		return says.weight == certain && says.signs.fits(amidPersonal)
	case says.signs.fits([][]signs{{signHand, signOnward | signPart, signColon}}) && d.at(n+1).kind != item && d.at(n+1).kind != code:
		return true
	case says.weight < certain:
		return !says.has(signPolite) && says.signs.fits([][]signs{{works, signMe, signYou | signGiven | signPart}})
	}
	return says.signs.fits(amid)
}

// works are signs of work on a text.
const works = signWill | signDid | signOnward | signLook | signSorry

// What a certain line has to say amid a text: of a part, of the request, of going on.
var (
	amidPersonal = [][]signs{
		{works, signOnward, signPart | signText | signRequest},
		{works, signPart, signRequest | signGiven},
	}
	amid = [][]signs{
		{signOnward, signWill},
		{signPart, signOnward | signHand, works | signRequest | signGiven | signColon},
		{works | signHail, signMe | signRequest, signRequest | signGiven | signOnward | signSorry | signPart},
		{works | signHail, signMe | signRequest, signWill, signText | signSaved},
	}
)

// extendRegister adds the lines that the check takes for content to the register: whether
// the document mentions its writer or its reader. It reports whether the register changed.
func (d *document) extendRegister(head, tail int) bool {
	before := [2]bool{d.personal, d.addressing}
	for n := head; n < len(d.order)-tail; n++ {
		if l := d.at(n); l.kind == prose && !l.protected && d.marked(n) && !d.interrupts(n) && !d.accept(n, between) {
			d.personal = d.personal || l.says.has(signMe)
			d.addressing = d.addressing || l.says.has(signYou)
		}
	}
	return before != [2]bool{d.personal, d.addressing}
}
