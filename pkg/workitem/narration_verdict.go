package workitem

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prefaced is how many lines before the artifact proper are narration: all of them
// when one is sure enough.
func (d *document) prefaced() int {
	lines, need := d.preface()
	for n := range lines {
		if says := d.at(n).says; says.weight >= need && (need == possible || says.weight == certain || says.colon) {
			return lines
		}
	}
	return 0
}

// tells says that line n at the head or the tail speaks of the artifact.
func (d *document) tells(n int, where position) bool {
	l := d.at(n)
	says := l.says
	if l.kind != prose || l.protected || says.weight == nothing || !d.stated(n) {
		return false
	}
	switch {
	case d.program || d.tabular:
		return d.natural(n) && d.alone(n) && (where == atHead || says.weight >= likely || says.has(signYou|signMe)) && says.has(signMe|signYou|signRequest|signWhole|signSaved|signDone|signHand|signHail|signModel|signGaps|signOffer)
	case where == atTail && d.signedBefore(n):
		return true
	case where == atTail && d.ruledBefore(n) && !d.personal:
		return says.weight >= likely
	case !says.opens, says.own && !says.has(signRequest|signOffer|signHail):
		return false
	case d.personal && where == atHead:
		return says.weight == certain && says.colon && says.has(signHand|signDid|signWill) && says.has(signText)
	case d.personal:
		return says.weight == certain && d.alone(n) && says.has(signOffer|signRequest|signDone) && says.has(signForm|signSize|signOnward) && !says.has(signWill)
	case where == atHead:
		return says.weight == certain || says.weight == likely && says.has(signDid|signWill|signHand|signRequest|signLook) && says.has(signMe|signRequest) && d.alone(n)
	case d.addressing:
		return says.weight == certain && d.alone(n) || says.weight == likely && says.has(signDid|signRequest|signSaved) && says.has(signMe) && d.alone(n)
	default:
		return says.weight == certain || says.weight == likely && d.alone(n) && (says.has(signDid|signRequest|signModel|signDone) && says.has(signMe) || says.has(signOffer|signPolite|signGaps) && says.has(signMe|signYou) || says.has(signSaved|signHail) && !says.has(signYou) || says.has(signRequest) && says.has(signDid|signDone|signSize))
	}
}

// stated says that line n is a statement as people write it, and no verse, record,
// entry or title.
func (d *document) stated(n int) bool {
	l := d.at(n)
	if d.boldTitle(n) {
		return !l.says.asks && d.sameParagraph(n+1) && d.at(n+1).kind == item
	}
	first, _ := utf8.DecodeRuneInString(l.bare)
	if unicode.IsLower(first) || unicode.IsDigit(first) || strings.HasSuffix(l.bare, ",") || keyed.MatchString(l.bare) && !noteWord.MatchString(l.plain) || strings.HasPrefix(l.raw, "**") {
		return false
	}
	return sentence(l.bare) || d.sameParagraph(n+1) && len(l.bare) > 40
}

// boldTitle says that all of line n is in bold.
func (d *document) boldTitle(n int) bool {
	raw := strings.TrimSpace(d.at(n).raw)
	return len(raw) > 4 && strings.HasPrefix(raw, "**") && strings.HasSuffix(raw, "**")
}

// keyed is an entry of a configuration, a dictionary or a conversation.
var keyed = regexp.MustCompile(`^[\p{L}_][\p{L}_.-]*: `)

// signedBefore says that line n stands behind the signature of a letter.
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

// ruledBefore says that a rule sets line n and what follows it apart.
func (d *document) ruledBefore(n int) bool {
	for m := n - 1; m > 0 && m >= len(d.order)-window; m-- {
		if d.at(m).kind == rule {
			return true
		}
	}
	return false
}

// interrupts says that line n, amid the content, speaks of the work on it.
func (d *document) interrupts(n int) bool {
	l := d.at(n)
	says := l.says
	if n == 0 || n == len(d.order)-1 || l.kind != prose || l.inText || says.weight < likely || !says.opens && !(says.has(signWill|signOnward) && says.has(signGiven|signRequest|signPart)) || !d.stated(n) || !d.alone(n) && !d.program && !d.tabular {
		return false
	}
	works := says.has(signWill | signDid | signOnward | signLook | signSorry)
	switch {
	case l.protected:
		return says.has(signLetter) && says.has(signWill|signDid)
	case d.program || d.tabular:
		return d.natural(n) && (d.tabular || !d.sameParagraph(n)) && (works || says.has(signHand|signRequest))
	case d.fences > 1 && d.headings == 0 && d.at(n-1).kind == code && d.at(n+1).kind == code:
		return says.has(signMe) && (works || says.has(signHand))
	case d.personal:
		return says.weight == certain && works && (says.has(signOnward) && says.has(signPart|signText|signRequest) || says.has(signPart) && says.has(signRequest|signGiven))
	case says.has(signHand) && says.has(signOnward|signPart) && says.colon && d.at(n+1).kind != item && d.at(n+1).kind != code:
		return true
	case says.has(signOnward) && says.has(signWill) && says.opens:
		return true
	case says.weight < certain:
		return works && says.has(signMe) && says.has(signYou|signGiven|signPart) && !says.has(signPolite)
	case says.has(signPart) && says.has(signOnward|signHand):
		return works || says.has(signRequest|signGiven) || says.colon
	default:
		return (works || says.has(signHail)) && says.has(signMe|signRequest) && (says.has(signRequest|signGiven|signOnward|signSorry) || says.has(signPart) || says.has(signWill) && says.has(signText|signSaved))
	}
}

// hearOut makes what the check takes for content part of the register: whether the
// document speaks of its writer, and to its reader. It says whether that tells more.
func (d *document) hearOut(head, tail int) bool {
	before := [2]bool{d.personal, d.addressing}
	for n := head; n < len(d.order)-tail; n++ {
		if l := d.at(n); l.kind == prose && !l.protected && d.marked(n) && !d.interrupts(n) && !d.accept(n, between) {
			d.personal = d.personal || l.says.has(signMe) || firstPerson.MatchString(speech.ReplaceAllString(l.raw, ""))
			d.addressing = d.addressing || l.says.has(signYou)
		}
	}
	return before != [2]bool{d.personal, d.addressing}
}
