package narration

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// document is an artifact as the check reads it.
type document struct {
	lines []line
	order []int // the lines that are not blank
	// facts are those of all lines: the kind of text it is.
	facts facts
	// speaking and addressing are the numbers of lines that mention the writer or the reader
	// and nothing of the work on a text; reporting of those that mention the writer and work.
	speaking, addressing, reporting int
}

type line struct {
	raw string
	// bare is the text without emphasis, brackets and signs around it.
	bare string
	kind kind
	// framed lines are those of a letter, from its salutation to its signature.
	framed    bool
	sentences []signs
	signs     signs // of all sentences
}

type kind int

const (
	blank kind = iota
	prose
	item    // of a list
	heading // or a comment of a program
	quoted  // block quotes and direct speech
	code    // fences and the lines in them, indented blocks, markup, tables
	rulerLine
	unread // far from both ends of a long artifact
)

const (
	// sample is the number of lines at each end that determine what kind of text it is.
	sample = 300
	// maxRead bounds how much of a line is read to determine its kind, in bytes.
	maxRead = 160
	// maxRemark is how long a line of narration may be, in bytes: a longer one is content.
	maxRemark = 600
)

// patterns of lines, which are the same in all languages. They are compiled at their first use.
var patterns = sync.OnceValue(func() (p struct{ item, ruler, fence, speaker, code, key, signed, commit, trailer *regexp.Regexp }) {
	p.item = regexp.MustCompile(`^\s*([-*+•‣]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\[[ xX]\])\s+\S`)
	p.ruler = regexp.MustCompile(`^\s*(-{3,}|\*{3,}|_{3,}|={3,}|~{3,}|(\* ){2,}\*|(- ){2,}-)\s*$`)
	p.fence = regexp.MustCompile("^\\s*(```|~~~)")
	p.speaker = regexp.MustCompile(`^\s*(?:\[[\d:.]+\]\s*)?[*_]{0,2}\p{Lu}[\p{L}\d.' -]{0,24}[*_]{0,2}:[*_]{0,2}\s+\S`)
	p.code = regexp.MustCompile(`^\s*(import|from|def|func|class|package|#include|const|let|var|if|for|while|return|else|elif|try|except|with|fn|pub|use|impl|struct|type|export|public|private|static|SELECT|FROM|WHERE|LIMIT|INSERT|do|done|fi|then|esac|end|echo|cd|ssh|curl|sudo|npm|pip|git|docker|RUN|COPY|CMD|ENV|WORKDIR|ENTRYPOINT|data class|fun|val|CREATE|UPDATE|JOIN|GROUP|ORDER|<\??/?[a-zA-Z!]|@\w)[\s({*"'<>=:]?|^\s*[\w.\[\]"']+\s*(=|:=|\+=)\s*\S|^\s*[\w.]+\(.*\)\s*$|^\s*(?:- )?[a-z_][\w.-]*:(?:\s|$)`)
	p.key = regexp.MustCompile(`^[\p{L}_][\p{L}_.-]*: `)
	p.signed = regexp.MustCompile(`^(?:--\s?|–\s?|—\s?|-)\p{Lu}[\p{L}.]*(?: \p{Lu}[\p{L}.]*){0,3}$`)
	p.commit = regexp.MustCompile(`^(?:(?:build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(?:\([^)]{1,40}\))?!?: \S|[a-z][\w./-]{0,30}: [a-z]|Merge |Revert ")`)
	p.trailer = regexp.MustCompile(`^(?:(?:Signed-off|Reviewed|Co-authored|Acked|Tested|Reported)-by|Change-Id|Fixes|Closes|Refs|BREAKING CHANGE)(?:: | #)\S`)
	return p
})

// readDocument splits an artifact into lines, classifies each of them, and reads its words.
func readDocument(content string) *document {
	d := &document{}
	fenced := ""
	lines := strings.Split(content, "\n")
	d.lines = make([]line, len(lines))
	fences, headings := 0, 0
	for n, raw := range lines {
		l := &d.lines[n]
		l.raw = strings.TrimSuffix(raw, "\r")
		marker := ""
		if strings.Contains(l.raw, "```") || strings.Contains(l.raw, "~~~") {
			marker = strings.TrimSpace(patterns().fence.FindString(l.raw))
		}
		switch trimmed := strings.TrimSpace(l.raw); {
		case trimmed == "":
			l.kind = blank
			continue
		case fenced != "":
			l.kind = code
			if marker == fenced && strings.Trim(trimmed, "`~") == "" {
				fenced = ""
			}
		case marker != "":
			l.kind, fenced = code, marker
			fences++
		case n >= sample && n < len(lines)-sample:
			l.kind = unread
		default:
			l.kind = kindOf(l.raw, trimmed)
		}
		d.order = append(d.order, n)
		if l.kind == heading {
			headings++
		}
		if l.kind == prose || l.kind == item || l.kind == heading || l.kind == code && toolCall(l.raw) {
			l.bare = bare(l.raw)
			if len(l.bare) <= maxRemark {
				l.read()
			}
			if l.kind == code {
				l.sentences, l.signs = []signs{signTool | signBegins}, signTool|signBegins
			}
		}
	}
	d.facts |= when(fences > 0, isFenced) | when(headings > 0, isHeaded) | when(len(d.order) <= 2, isTerse) | when(len(d.order) <= 6, isSmall)
	d.frameLetter()
	d.frameDialogue()
	d.classify(fences)
	return d
}

// kindOf returns the kind of a line by how it begins.
func kindOf(raw, trimmed string) kind {
	begun := raw[:min(len(raw), maxRead)]
	r, _ := utf8.DecodeRuneInString(trimmed)
	switch {
	case placeholder(trimmed):
		return prose
	case patterns().ruler.MatchString(begun):
		return rulerLine
	case r == '#' || r == '%' || strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "/*") || strings.HasPrefix(trimmed, "--") ||
		strings.HasPrefix(trimmed, "*/"):
		return heading
	case patterns().item.MatchString(begun):
		return item
	case strings.ContainsRune(`>"“«‘—'`, r):
		return quoted
	case strings.ContainsRune("|<{", r), strings.HasPrefix(trimmed, `["`), strings.HasPrefix(raw, "    "), raw[0] == '\t':
		return code
	}
	return prose
}

// placeholder reports whether a line is all in brackets, as a gap to fill in is.
func placeholder(trimmed string) bool {
	if len(trimmed) < 4 || len(trimmed) > maxRead {
		return false
	}
	first, last := trimmed[0], trimmed[len(trimmed)-1]
	if comment, ok := strings.CutPrefix(trimmed, "<!--"); ok && strings.HasSuffix(comment, "-->") {
		return true
	}
	inner := strings.Trim(trimmed, "<>{}[]")
	return (first == '<' && last == '>' || first == '{' && last == '}' || first == '[' && last == ']') &&
		!strings.ContainsAny(inner, "<>{}[]=/\"';@,|&") && (first != '<' || strings.Contains(inner, " ") && inner[0] != '!' && inner[0] != '?')
}

// toolCall reports whether a line is markup of a call of a tool.
func toolCall(raw string) bool {
	begun := strings.TrimSpace(raw[:min(len(raw), maxRead)])
	return strings.HasPrefix(begun, "<tool_call") || strings.HasPrefix(begun, "<function_call") || strings.HasPrefix(begun, `{"tool":`) || strings.HasPrefix(begun, `{"tool_call`)
}

// bare returns a line without the signs around its words.
func bare(raw string) string {
	return strings.TrimFunc(strings.TrimSpace(raw), func(r rune) bool {
		return strings.ContainsRune("*_~()[]{}<>#%/+-• \t", r) || unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r != '`' || r == 0xFE0F || r == 0x200D
	})
}

// isSentence reports whether a line comes to an end.
func isSentence(bare string) bool {
	r, _ := utf8.DecodeLastRuneInString(bare)
	return bare != "" && strings.ContainsRune(".:!?…", r)
}

// at returns the n-th line that is not blank.
func (d *document) at(n int) *line { return &d.lines[d.order[n]] }

// sameParagraph reports whether line n follows line n-1 without a blank one.
func (d *document) sameParagraph(n int) bool {
	return n > 0 && n < len(d.order) && d.order[n] == d.order[n-1]+1
}

// frameLetter marks the lines between salutation and signature: a letter addresses its reader.
func (d *document) frameLetter() {
	from, to := -1, -1
	for n := range min(len(d.order), 2*window) {
		if l := d.at(n); l.kind == prose && l.signs.has(signSalutation|signHeader) {
			from = n
			break
		}
	}
	for n := len(d.order) - 1; n >= max(0, len(d.order)-2*window, from+1); n-- {
		if l := d.at(n); l.kind == prose && l.signs.has(signClosing) && len(strings.Fields(l.bare)) <= 8 ||
			len(l.raw) < maxRead && patterns().signed.MatchString(strings.TrimSpace(l.raw)) {
			to = d.signatureEnd(n)
			break
		}
	}
	if from < 0 && to < 0 {
		return
	}
	d.facts |= isLetter
	if from < 0 {
		for from = 0; from < to && from < maxStripped && d.at(from).signs.has(signHand|signWill|signHail); from++ {
			continue
		}
	}
	if to < 0 {
		to = len(d.order) - 1
	}
	for n := from; n <= to; n++ {
		d.at(n).framed = true
	}
}

// maxSignature is the number of lines that a signature may have.
const maxSignature = 6

// signatureEnd returns the last line of the signature that starts in line n: short lines, and
// a postscript.
func (d *document) signatureEnd(n int) int {
	end := n
	for m := n + 1; m < len(d.order) && m <= n+maxSignature; m++ {
		l := d.at(m)
		head := strings.ToUpper(strings.ReplaceAll(l.raw[:min(len(l.raw), 4)], ".", ""))
		switch {
		case strings.HasPrefix(head, "PS"):
		case l.kind == rulerLine, len(strings.Fields(l.raw)) > 8, l.signs.has(working | signDone | signProposal | signSize), !d.sameParagraph(m) && isSentence(l.bare):
			return end
		}
		end = m
	}
	return end
}

// frameDialogue marks the lines of a conversation, whose speakers say I, as quoted.
func (d *document) frameDialogue() {
	var spoken []int
	read := 0
	for n := range d.order {
		l := d.at(n)
		if l.kind == unread {
			continue
		}
		read++
		if begun := l.raw[:min(len(l.raw), maxRead)]; strings.Contains(begun, ":") && patterns().speaker.MatchString(begun) {
			spoken = append(spoken, n)
		}
	}
	if len(spoken) < 3 || len(spoken)*2 < read {
		return
	}
	d.facts |= isSpoken
	for _, n := range spoken {
		if l := d.at(n); l.kind == prose {
			l.kind = quoted
		}
	}
}

// classify determines what kind of text the document is.
func (d *document) classify(fences int) {
	written, programmed, values := 0, 0, 0
	for n := range d.order {
		l := d.at(n)
		if l.kind == unread {
			continue
		}
		written++
		if coded(l.raw) {
			programmed++
		}
		if strings.Count(l.raw[:min(len(l.raw), maxRead)], ",") > 1 && !isSentence(l.bare) || strings.HasPrefix(l.raw, "|") {
			values++
		}
		if !l.framed && l.kind != quoted && l.kind != code {
			d.speaking += count(l.speaks())
			d.addressing += count(l.addresses())
			d.reporting += count(l.reports())
		}
	}
	d.facts |= when(fences == 0 && programmed*2 > written && programmed > 1, isProgram) | when(values*2 > written, isTabular)
	if len(d.order) > 0 {
		first, last := d.at(0), d.at(len(d.order)-1)
		subject := len(first.raw) <= 72 && first.kind == prose && !isSentence(first.bare) && (len(d.order) == 1 || !d.sameParagraph(1))
		d.facts |= when(subject && patterns().commit.MatchString(first.raw) || patterns().trailer.MatchString(last.raw) || subject && d.wrapped(), isCommit)
	}
}

// wrapped reports whether the text after a subject is paragraphs of several lines of up to 76
// characters, as in the message of a commit.
func (d *document) wrapped() bool {
	joined := 0
	for n := 1; n < len(d.order) && n < sample; n++ {
		l := d.at(n)
		if len(l.raw) > 76 || l.kind != prose && l.kind != item && !d.sameParagraph(n) {
			return false
		}
		joined += count(d.sameParagraph(n) && l.kind == prose && len(d.at(n-1).raw) > 45 && !isSentence(d.at(n-1).bare))
	}
	return joined > 0
}

// coded reports whether a line looks like one of a program.
func coded(raw string) bool {
	trimmed := strings.TrimSpace(raw)
	if begun := trimmed[:min(len(trimmed), maxRead)]; 'A' <= begun[0] && begun[0] <= 'Z' && len(begun) > 1 && (begun[1] == ' ' || 'a' <= begun[1] && begun[1] <= 'z') &&
		!strings.ContainsAny(begun, "=(:{}[") && !strings.HasSuffix(trimmed, ";") {
		return false // begins as a sentence does
	}
	return strings.ContainsRune(";{}", rune(trimmed[len(trimmed)-1])) || strings.ContainsRune(")]}", rune(trimmed[0])) || patterns().code.MatchString(raw[:min(len(raw), maxRead)])
}

func when(is bool, f facts) facts {
	if is {
		return f
	}
	return 0
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
