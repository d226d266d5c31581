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
	case says.has(signTool):
		return true
	case d.program || d.tabular:
		return d.natural(n) && d.alone(n) && (where == atHead && says.has(ofProgram) || says.has(signMe|signYou) || says.weight >= likely && says.has(ofProgram))
	case d.spoken(n) && !d.personal && !says.has(signVoice|signLater) && says.has(ofWork):
		return where == atHead || !d.addressing || says.weight >= likely
	case where == atTail && says.weight == certain && says.has(signProposal) && says.has(signAsks) && (!d.personal || d.last(n) && says.has(signText)):
		return true
	case where == atTail && !d.personal && !d.addressing && d.last(n) && l.turnsAway():
		return d.alone(n)
	case !says.opens, says.own && !says.has(signRequest|signProposal|signHail):
		return false
	case d.personal:
		return says.weight == certain && d.isAboutForm(n, where)
	case says.weight == certain:
		return where == atHead || !d.addressing || d.alone(n)
	case !d.alone(n):
		return false
	case says.weight == possible:
		return where == atHead && says.has(signHand) && says.has(signText)
	case where == atHead:
		return says.signs.fits(likelyHead)
	case d.addressing:
		return says.signs.fits(likelyTail[:1]) || d.last(n) && says.signs.fits(addressingLast) && !says.has(signYou|signLater)
	}
	return says.signs.fits(likelyTail) || says.has(signDone|signSaved|signHail|signProposal|signOnward) && !says.has(signLater)
}

// turnsAway reports whether a last line turns from the content to its reader, or to the text.
func (l *line) turnsAway() bool {
	return l.says.signs.fits(lastOnly) || l.says.first.has(signPolite|signHail|signOnward) || strings.HasPrefix(l.raw, "(") && l.says.has(signSize|signGiven|signRequest)
}

// ofProgram are signs of a sentence about a program or a table.
const ofProgram = signRequest | signWhole | signSaved | signDone | signHand | signHail | signModel | signGaps | signProposal

// What a likely line has to say at the edges of a text that does not say I.
var (
	likelyHead = [][]signs{{signRequest | signProposal | signHail}, {signDid | signWill | signHand | signLook, signMe}, {signHand, signText | signColon}}
	likelyTail = [][]signs{
		{signDid | signRequest | signSaved, signMe},
		{signModel | signDone, signMe},
		{signProposal | polite | signGaps, signMe | signYou},
		{signRequest, signDid | signDone | signSize},
	}
	lastOnly       = [][]signs{{signSize, signForm}, {signText, signYou}}
	addressingLast = [][]signs{{signDone, signText}, {signWill | signProposal, signMe}}
)

// isAboutForm reports whether line n is about the artifact as a text. Content in the
// first person is not.
func (d *document) isAboutForm(n int, where position) bool {
	says := d.at(n).says
	if where == atTail {
		return d.alone(n) && says.signs.fits(personalTail) && !says.has(signWill) ||
			d.last(n) && d.alone(n) && says.signs.fits(personalLast) && !says.has(signLater|signGiven)
	}
	return says.has(signText) && says.has(signColon) && says.has(signHand|signDid|signWill) ||
		n == 0 && d.alone(n) && says.signs.fits(personalFirst) && !says.has(signLater|signGiven)
}

// What a certain line has to say at the edges of a text that says I.
var (
	personalTail = [][]signs{{signProposal | signRequest | signDone, signForm | signSize | signOnward | signPolite}}
	personalLast = [][]signs{{signSaved, signWhole | signText}, {signSaved, signDid}, {signDone, signText}, {signDid, signSize},
		{signWill, signPart}}
	personalFirst = [][]signs{{signRequest | signHail, signDid | signHand | signWill}, {signHand, signText}, {signWill, signText}}
)

// stated reports whether line n is a statement as people write it, and no verse, record,
// entry or title.
func (d *document) stated(n int) bool {
	l := d.at(n)
	if d.boldTitle(n) {
		return sentence(l.bare) && l.says.weight >= likely || !l.says.has(signAsks) && d.sameParagraph(n+1) && d.at(n+1).kind == item
	}
	if strings.ContainsRune("([-", rune(l.raw[0])) && l.says.weight >= likely {
		return true
	}
	first, _ := utf8.DecodeRuneInString(l.bare)
	if unicode.IsLower(first) || unicode.IsDigit(first) || strings.HasSuffix(l.bare, ",") ||
		keyed.matchString(l.bare) && !noteWord.matchString(l.plain) || strings.HasPrefix(l.raw, "**") {
		return false
	}
	return sentence(l.bare) || d.sameParagraph(n+1) && len(l.bare) > 40 ||
		n == 0 && len(d.order) > 1 && d.at(1).kind == heading && l.says.first.has(signHand) && l.says.has(signText)
}

// boldTitle reports whether all of line n is in bold.
func (d *document) boldTitle(n int) bool {
	raw := strings.TrimSpace(d.at(n).raw)
	return len(raw) > 4 && strings.HasPrefix(raw, "**") && strings.HasSuffix(raw, "**")
}

// keyed is an entry of a configuration, a dictionary or a conversation.
var keyed = lazily(`^[\p{L}_][\p{L}_.-]*: `)

// interrupts reports whether line n, amid the content, is about the work on it.
func (d *document) interrupts(n int) bool {
	l := d.at(n)
	says := l.says
	switch {
	case n == 0, n == len(d.order)-1, l.kind != prose, l.inText, !d.stated(n):
		return false
	case says.has(signOnward) && strings.HasPrefix(l.raw, "("):
		return d.alone(n) || d.program || d.tabular
	case says.weight < likely:
		return false
	case d.tabular && says.weight == certain && d.natural(n):
		return true
	case !says.opens && !says.signs.fits([][]signs{{signWill | signOnward, signGiven | signRequest | signPart | signOnward}}):
		return false
	case d.program || d.tabular:
		return d.natural(n) && (d.tabular || !d.sameParagraph(n) || says.weight == certain) && says.has(works|signHand|signRequest)
	case !d.alone(n):
		return false
	case l.protected:
		return says.has(signWill|signDid) && (says.has(signLetter) || says.signs.fits(amidPersonal) && !says.has(signYou|signGiven|signLater))
	case d.fences > 1 && d.headings == 0 && d.at(n-1).kind == code && d.at(n+1).kind == code:
		return says.has(signMe) && says.has(works|signHand)
	case d.personal:
		return says.weight == certain && says.signs.fits(amidPersonal) && !says.has(signLater)
	case says.signs.fits([][]signs{{signHand, signOnward | signPart, signColon}}) && d.at(n+1).kind != item && d.at(n+1).kind != code:
		return true
	case says.first.has(signWill|signLook) && says.has(signMe) && !says.has(signLater|signVoice|polite|signYou):
		return true
	case says.weight == certain && (n < 3 && d.at(n-1).kind == heading && says.first.fits(afterTitle)):
		return true
	case says.weight < certain:
		return !says.has(polite) && says.signs.fits([][]signs{{works, signMe, signYou | signGiven | signPart}})
	}
	return says.signs.fits(amid)
}

// works are signs of work on a text. ofWork are those of a sentence that may be about it.
const (
	works  = signWill | signDid | signOnward | signLook | signSorry
	ofWork = signDid | signOnward | signLook | signSorry | signPast | signText | signPart | signSize | signHand | signGiven | signRequest | signThinks | signModel
)

// What a certain line has to say amid a text: of a part, of the request, of going on.
var (
	amidPersonal = [][]signs{
		{works, signOnward, signPart | signText | signRequest},
		{works, signPart, signRequest | signGiven | signWill},
	}
	afterTitle = [][]signs{
		{works, signMe, signText | signRequest},
		{signHand, signText | signRequest},
	}
	amid = [][]signs{
		{signOnward, signWill},
		{signPart, signOnward | signHand, works | signRequest | signGiven | signColon},
		{works | signHail, signMe | signRequest, signRequest | signGiven | signOnward | signSorry | signPart},
		{works | signHail, signMe | signRequest, signWill, signText | signSaved},
		{signSaved, signMe, works | signPast, signText}, // "I've saved the report to report.md."
	}
)

// extendRegister adds the lines that the check takes for content to the register: whether
// the document mentions its writer or its reader. It reports whether the register changed.
func (d *document) extendRegister(head, tail int) bool {
	before := [2]bool{d.personal, d.addressing}
	for n := head; n < len(d.order)-tail; n++ {
		if l := d.at(n); l.kind == prose && !l.protected && d.marked(n) && !d.interrupts(n) {
			d.personal = d.personal || l.says.has(signMe)
			d.addressing = d.addressing || l.says.has(signYou)
		}
	}
	return before != [2]bool{d.personal, d.addressing}
}
