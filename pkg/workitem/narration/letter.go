package narration

import (
	"strings"
)

// A letter addresses its reader: the lines between salutation and signature are content,
// even if they say "Let me know".

var (
	salutation = lazily(`^(dear|hi|hello|hey|hiya|good (morning|afternoon|evening|day)|greetings|to whom it may concern|to the)\b[^.?:]{0,48}[,:!–—-]?$|^(?:hi|hello|hey|dear|hallo|hola|bonjour|salut|liebe[rs]?) (?:[\p{L}'.@-]+ ){0,3}?[\p{L}'.@-]+, \S.*$|^good (?:morning|afternoon|evening),? [^.]{1,30}[.!]$|^(?:sehr geehrte[rs]?|liebe[rs]?|hallo|guten (?:tag|morgen|abend)|werte[rs]?|moin|cher|chère|chers|chères|bonjour|bonsoir|madame|monsieur|mesdames|salut|hola|querid[oa]s?|estimad[oa]s?|apreciad[oa]s?|buen[oa]s (?:días|tardes|noches))[^.?]{0,48}[,:!]$|^(team|all|everyone|folks|colleagues|friends|hi|hello|@\w+)[,:!]$`)
	header     = lazily(`^(subject|to|from|cc|bcc|sent|re|betreff|an|von|objet|à|de|asunto|para|bezug) ?:\s*\S`)
	closing    = lazily(`^(?:(?:with )?(?:my |our )?(?:best|kind|kindest|warm|warmest|many|sincere|friendly)?(?: and (?:kind|warm|best))? ?(?:regards|wishes|thanks|greetings)|(?:very )?sincerely(?: yours)?|yours(?: (?:sincerely|faithfully|truly|ever))?|cheers|best|warmly|love|cordially|respectfully(?: (?:yours|submitted))?|take care|talk soon|(?:see|speak to|talk to) you(?: \w+){0,3}|until (?:then|soon|\w+day)|looking forward(?: to [^.]{1,40})?|have a (?:great|nice|good|lovely) [\w ]{1,20}|bye(?: for now)?|hugs|all (?:the|my) best|with (?:gratitude|appreciation|thanks|love|sympathy)|thanks(?: (?:again|all|so much|very much|in advance|a lot|everyone|team))?|thank you(?: (?:again|all|so much|very much|in advance))?|in gratitude|onwards?|stay safe|(?:mit )?(?:(?:freundlichen?|besten?|herzlichen?|vielen?|lieben?|schönen?) )+(?:grüßen?|dank|gruß)(?: aus \w+)?|hochachtungsvoll|(?:bien |très )?cordialement|amicalement|(?:bien )?à (?:vous|toi|bientôt)|sincères salutations|meilleures salutations|(?:un |muchos )?(?:cordial )?(?:saludos?|abrazos?|besos?)(?: cordial(?:es)?)?|atentamente|cordialmente)[,.!]?$`)
	dashSigned = lazily(`^(?:--\s?|–\s?|—\s?|-)\p{Lu}[\p{L}.]*(?: \p{Lu}[\p{L}.]*){0,3}$`)
	postscript = lazily(`^p\.?\s?s\.?[:,. ]`)
)

// maxClosing is how long a closing may be, in bytes.
const maxClosing = 120

// maxSignature is the number of lines a signature may have.
const maxSignature = 6

// frameLetter protects the lines of a letter.
func (d *document) frameLetter() {
	from, to := -1, -1
	for n := range min(len(d.order), 2*window) {
		if l := d.at(n); l.kind == prose && len(l.plain) < maxRemark && (salutation.matchString(l.plain) || header.matchString(l.plain)) {
			from, d.saluted = n, true
			break
		}
	}
	for n := len(d.order) - 1; n >= 0 && n >= len(d.order)-2*window; n-- {
		l := d.at(n)
		if len(l.plain) < maxClosing && (l.kind == prose && (closing.matchString(l.plain) || from >= 0 && d.closes(n)) || dashSigned.matchString(strings.TrimSpace(l.raw))) {
			to = d.signatureEnd(n)
			break
		}
	}
	switch {
	case from < 0 && to < 0:
		return
	case from < 0 && to >= 0:
		// Without a salutation it begins after what introduces it.
		for from = 0; from < min(to, maxStripped) && introduces(d.at(from)); from++ {
			continue
		}
	case to < 0:
		// Without a signature it continues to the end, except for lines that mention it as a text.
		for to = len(d.order) - 1; to > from && d.at(to).kind == prose && d.ofTheText(to); to-- {
			continue
		}
	}
	for n := from; n <= to; n++ {
		d.at(n).protected = true
	}
}

// closes reports whether line n looks like the closing of a letter: a few words, a comma,
// and a name in the next line.
func (d *document) closes(n int) bool {
	l := d.at(n)
	if !strings.HasSuffix(l.bare, ",") || len(strings.Fields(l.bare)) > 5 || d.sameParagraph(n) || !d.sameParagraph(n+1) || d.sameParagraph(n+2) {
		return false
	}
	name := d.at(n + 1)
	return name.kind == prose && len(strings.Fields(name.bare)) < 7 && !sentence(name.bare)
}

// signatureEnd returns the last line of the signature that starts in line n: short lines
// and postscripts.
func (d *document) signatureEnd(n int) int {
	end := n
	for m := n + 1; m < len(d.order) && m <= n+maxSignature; m++ {
		l := d.at(m)
		switch {
		case postscript.matchString(l.plain):
			for end = m; d.sameParagraph(end + 1); end++ {
				continue
			}
			m = end
			continue
		case l.kind == rule:
			return end
		case len(strings.Fields(l.raw)) > 8, l.kind == prose && testify(l.bare).weight >= likely, !d.sameParagraph(m) && sentence(l.bare):
			return end
		}
		end = m
	}
	return end
}

func introduces(l *line) bool {
	says := testify(l.bare)
	return l.kind == prose && says.weight >= likely && says.has(signHand|signWill)
}

// ofTheText reports whether line n at the end of a letter is none of its lines.
func (d *document) ofTheText(n int) bool {
	l := d.at(n)
	if ofTheText.matchString(l.plain) {
		return true
	}
	says := testify(l.bare)
	return !d.sameParagraph(n) && says.weight == certain && says.has(signProposal|signRequest|signGaps|signModel) && !says.has(polite|signHand)
}

// ofTheText mentions a letter as a text, which the letter itself does not do.
var ofTheText = lazily(`\b(?:the|this) (?:tone|wording|draft|length|artifact|deliverable|work item)\b|\b(?:saved|stored)\b.*\b(?:as|to|in)\b|\b(?:i've|i have) (?:written|drafted|kept|saved|stored|created|put together) |\bmeets your needs\b|\bwhat you (?:wanted|had in mind|were looking for)\b|(?:adjust|revise|change|modify|shorten|rewrite|tweak|refine)\b.*\b(?:email|e-mail|letter|message|draft|tone|it)\b`)
