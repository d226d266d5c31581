package narration

import (
	"encoding/json"
	"strings"
	"unicode"
)

// document is an artifact as the check for narration reads it.
type document struct {
	lines []line
	order []int // the lines that are not blank
	// personal is true if it mentions itself in the first person, apart from the
	// lines in question.
	personal bool
	// addressing is true if it speaks to its reader, in the same sense.
	addressing bool
	// program is true if most of it is code.
	program bool
	// fences is the number of fenced blocks it has.
	fences, headings int
	// saluted is true if it is a letter with a salutation or a header.
	saluted bool
	// tabular is true if it is records of values, CSV or JSON.
	tabular bool
}

type line struct {
	raw string
	// bare is the text without emphasis, brackets and signs around it.
	bare string
	// plain is bare in lower case with straight apostrophes.
	plain string
	kind  kind
	// protected lines are always content, whatever their words: the lines of a letter.
	protected bool
	// inText lines are in a comment or a text of a program.
	inText bool
	says   testimony
}

type kind int

const (
	blank kind = iota
	prose
	item    // of a list
	heading // or a comment of a program
	quoted  // block quotes and direct speech
	code    // fences and the lines in them, indented blocks, markup, tables
	rule
	unread // far from both ends of a long artifact
)

// sample is the number of lines at each end that determine what kind of text an artifact is.
const sample = 300

var (
	listItem  = lazily(`^\s*([-*+•‣]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\[[ xX]\])\s+\S`)
	ruleLine  = lazily(`^\s*(-{3,}|\*{3,}|_{3,}|={3,}|~{3,}|(\* ){2,}\*|(- ){2,}-)\s*$`)
	fenceLine = lazily("^\\s*(```|~~~)")
	speaker   = lazily(`^\s*(?:\[[\d:.]+\]\s*)?[*_]{0,2}\p{Lu}[\p{L}\d.' -]{0,24}[*_]{0,2}:[*_]{0,2}\s+\S`)
	speech    = lazily(`"[^"]*"|“[^”]*”|` + "`[^`]*`")
	codeStart = lazily(`^\s*(import|from|def|func|class|package|#include|const|let|var|if|for|while|return|else|elif|try|except|with|fn|pub|use|impl|struct|type|export|public|private|static|SELECT|FROM|WHERE|LIMIT|INSERT|do|done|fi|then|esac|end|echo|cd|ssh|curl|sudo|npm|pip|git|docker|RUN|COPY|CMD|ENV|WORKDIR|ENTRYPOINT|data class|fun|val|CREATE|UPDATE|JOIN|GROUP|ORDER|<\??/?[a-zA-Z!]|@\w)[\s({*"'<>=:]?|^\s*[\w.\[\]"']+\s*(=|:=|\+=)\s*\S|^\s*[\w.]+\(.*\)\s*$|^\s*(?:- )?[a-z_][\w.-]*:(?:\s|$)`)
)

// readDocument splits an artifact into lines and classifies each of them.
func readDocument(content string) *document {
	d := &document{}
	fenced := ""
	lines := strings.Split(content, "\n")
	for n, raw := range lines {
		l := line{raw: strings.TrimSuffix(raw, "\r")}
		marker := ""
		if strings.Contains(l.raw, "```") || strings.Contains(l.raw, "~~~") {
			marker = fenceLine.findString(l.raw)
		}
		switch trimmed := strings.TrimSpace(l.raw); {
		case trimmed == "":
			l.kind = blank
		case fenced != "":
			l.kind = code
			if strings.TrimSpace(marker) == fenced && strings.Trim(trimmed, "`~") == "" {
				fenced = ""
			}
		case marker != "":
			l.kind, fenced = code, strings.TrimSpace(marker)
			d.fences++
		case n >= sample && n < len(lines)-sample:
			l.kind = unread
		default:
			l.kind = kindOf(l.raw, trimmed)
		}
		if l.kind == heading {
			d.headings++
		}
		if l.kind == prose {
			l.bare = bare(l.raw)
			l.plain = strings.ToLower(strings.ReplaceAll(l.bare, "’", "'"))
		}
		if l.kind != blank {
			d.order = append(d.order, len(d.lines))
		}
		d.lines = append(d.lines, l)
	}
	d.frameLetter()
	d.frameDialogue()
	for _, at := range d.order {
		l := &d.lines[at]
		if l.kind != prose {
			continue
		}
		l.says = testify(l.bare)
		if l.says.weight > nothing && l.says.has(signProposal|polite) && !l.says.has(signWill) && toPublic.matchString(l.plain) {
			l.says.weight = nothing
		}
	}
	d.readTexts()
	d.readTable()
	d.readRegister()
	return d
}

// frameDialogue protects the lines of a conversation, in which the speakers say I.
func (d *document) frameDialogue() {
	spoken := 0
	read := 0
	for n := range d.order {
		if d.at(n).kind == unread {
			continue
		}
		read++
		if raw := d.at(n).raw; strings.Contains(raw[:min(len(raw), maxCode)], ":") && speaker.matchString(raw) {
			spoken++
		}
	}
	if spoken < 3 || spoken*2 < read {
		return
	}
	for n := range d.order {
		if l := d.at(n); l.kind == prose && speaker.matchString(l.raw) {
			l.kind = quoted
		}
	}
}

func kindOf(raw, trimmed string) kind {
	switch {
	case ruleLine.matchString(raw):
		return rule
	case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "//"), strings.HasPrefix(trimmed, "/*"),
		strings.HasPrefix(trimmed, "--"), strings.HasPrefix(trimmed, "* "), strings.HasPrefix(trimmed, "*/"), strings.HasPrefix(trimmed, "%"):
		if listItem.matchString(raw) {
			return item
		}
		return heading
	case listItem.matchString(raw):
		return item
	case strings.HasPrefix(trimmed, ">"), strings.HasPrefix(trimmed, `"`), strings.HasPrefix(trimmed, "“"), strings.HasPrefix(trimmed, "«"), strings.HasPrefix(trimmed, "‘"), strings.HasPrefix(trimmed, "—"), strings.HasPrefix(trimmed, "'"):
		return quoted
	case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "<"), strings.HasPrefix(trimmed, "{"), strings.HasPrefix(trimmed, "["+`"`),
		strings.HasPrefix(raw, "    "), strings.HasPrefix(raw, "\t"):
		return code
	}
	return prose
}

// bare returns a line without the signs around its words.
func bare(raw string) string {
	return strings.TrimFunc(strings.TrimSpace(raw), func(r rune) bool {
		return strings.ContainsRune("*_~()[] \t", r) || unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || r == 0xFE0F || r == 0x200D
	})
}

// sentence reports whether a line comes to an end.
func sentence(bare string) bool {
	return bare != "" && strings.ContainsRune(".:!?…", []rune(bare[lastRune(bare):])[0])
}

func lastRune(s string) int {
	at := len(s) - 1
	for at > 0 && s[at]&0xC0 == 0x80 {
		at--
	}
	return at
}

// at returns the n-th line that is not blank.
func (d *document) at(n int) *line { return &d.lines[d.order[n]] }

// sameParagraph reports whether line n follows line n-1 without a blank one.
func (d *document) sameParagraph(n int) bool {
	return n > 0 && n < len(d.order) && d.order[n] == d.order[n-1]+1
}

// alone reports whether line n is a separate paragraph, or introduces something that is
// not prose.
func (d *document) alone(n int) bool {
	before := !d.sameParagraph(n) || d.at(n-1).kind != prose || d.marked(n-1) || n > 1 && d.continues(n-1)
	after := !d.sameParagraph(n+1) || d.at(n+1).kind != prose || d.marked(n+1) || !sentence(d.at(n).bare) || anaphor.matchString(d.at(n+1).plain)
	return before && after
}

// maxCode bounds how much of a line shows whether it is code, in bytes.
const maxCode = 160

// coded reports whether a line looks like one of a program.
func coded(raw string) bool {
	trimmed := strings.TrimSpace(raw)
	if begun := trimmed[:min(len(trimmed), maxCode)]; 'A' <= begun[0] && begun[0] <= 'Z' && len(begun) > 1 && (begun[1] == ' ' || 'a' <= begun[1] && begun[1] <= 'z') &&
		!strings.ContainsAny(begun, "=(:{}[") && !strings.HasSuffix(trimmed, ";") {
		return false // begins as a sentence does
	}
	return strings.ContainsRune(";{}", rune(trimmed[len(trimmed)-1])) || strings.ContainsRune(")]}", rune(trimmed[0])) || codeStart.matchString(raw[:min(len(raw), maxCode)])
}

// marked reports whether the words of line n are about an artifact.
func (d *document) marked(n int) bool {
	return d.at(n).says.weight >= likely
}

// spoken reports whether line n is a paragraph at an edge that mentions its writer.
func (d *document) spoken(n int) bool {
	l := d.at(n)
	return (n == 0 || d.last(n)) && l.kind == prose && l.says.first.has(signMe) && !l.says.turns && d.alone(n)
}

// readRegister determines whether the document speaks in the first person and addresses
// its reader, without the lines in question.
func (d *document) readRegister() {
	written, programmed, listed := 0, 0, false
	for n, at := range d.order {
		l := &d.lines[at]
		if d.marked(n) || d.spoken(n) && (!d.spoken(0) || !d.spoken(len(d.order)-1)) ||
			n > 0 && l.kind == prose && d.marked(n-1) && d.sameParagraph(n) && !sentence(d.at(n-1).bare) {
			d.personal = d.personal || !l.protected && l.says.turns
			continue
		}
		if l.kind == unread || l.kind == code && (d.fences > 0 || !coded(l.raw)) {
			continue
		}
		if listed = l.kind == item && (listed || n > 0 && d.marked(n-1) && (d.at(n-1).says.has(signColon) || d.boldTitle(n-1))); listed {
			continue // a list of finished work
		}
		written++
		if coded(l.raw) {
			programmed++
		}
		if l.kind == code {
			continue
		}
		if l.protected {
			continue
		}
		says := l.says
		if l.kind != prose {
			says = testify(bare(l.raw))
		}
		d.personal = d.personal || says.has(signMe)
		d.addressing = d.addressing || says.has(signYou)
	}
	d.program = d.fences == 0 && programmed*2 > written && programmed > 1
}

// structured is the number of lines precede (or after) a JSON document: they are no
// part of it, whatever they say. 0 when the artifact is something else.
func (d *document) structured(head bool) int {
	from, to := -1, -1
	for n := range d.order {
		trimmed := strings.TrimSpace(d.at(n).raw)
		if from < 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
			from = n
		}
		if last := trimmed[len(trimmed)-1]; last == '}' || last == ']' {
			to = n
		}
	}
	if from < 0 || to < from || from == 0 && to == len(d.order)-1 || (to-from+1)*2 < len(d.order) || from > window || len(d.order)-1-to > window {
		return 0
	}
	raw := make([]string, 0, to-from+1)
	for n := from; n <= to; n++ {
		raw = append(raw, d.at(n).raw)
	}
	text := strings.Join(raw, "\n")
	if len(text) < 16 || !json.Valid([]byte(text)) {
		return 0
	}
	for n := range d.order {
		if (n < from || n > to) && d.at(n).kind != prose && d.at(n).kind != item {
			return 0
		}
	}
	if head {
		return from
	}
	return len(d.order) - 1 - to
}
