package narration

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The position of a line counts as much as its words: a sentence before the salutation
// of a letter, between two functions or after a table of values is no part of them.

// preface is the number of lines precede the artifact proper, and how sure a line of
// them has to be for all of them to be narration. 0 when it begins with the first line.
func (d *document) preface() (lines int, need weight) {
	for n := range min(len(d.order), window+2) {
		if n > 0 {
			if need = d.startWeight(n); need > nothing {
				return n, need
			}
		}
		if l := d.at(n); l.kind != rule && (l.kind != prose || l.protected || !d.stated(n) || (d.program || d.tabular) && !d.natural(n)) {
			return 0, nothing
		}
	}
	return 0, nothing
}

// startWeight returns the weight that narration before line n must have if the artifact
// starts there; nothing if it cannot start there.
func (d *document) startWeight(n int) weight {
	l := d.at(n)
	switch {
	case l.protected && !d.at(n-1).protected && d.saluted:
		return possible
	case d.program || d.tabular:
		if !d.natural(n) {
			return possible
		}
	case l.kind == heading && strings.HasPrefix(l.raw, "# "):
		return possible
	case l.kind == heading && strings.HasPrefix(l.raw, "#"), d.titled(n), l.kind == prose && unreadable(l.bare):
		return likely
	}
	return nothing
}

// titled reports whether line n looks like a title: a short separate line without final
// punctuation.
func (d *document) titled(n int) bool {
	l := d.at(n)
	if l.kind != prose || d.sameParagraph(n) || l.bare == "" || sentence(l.bare) || strings.HasSuffix(l.bare, ",") || len(strings.Fields(l.bare)) > 10 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(l.bare)
	return unicode.IsUpper(first) && (!d.sameParagraph(n+1) || strings.HasPrefix(l.raw, "**"))
}

// natural reports whether line n is a sentence of a natural language, at the left margin and
// outside of comments and texts of a program.
func (d *document) natural(n int) bool {
	l := d.at(n)
	if l.kind != prose || l.inText || l.protected || len(l.raw) > maxRemark || strings.ContainsAny(speech.replaceAllString(l.bare, ""), "{}=<>|\\") || !sentence(l.bare) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(l.raw, "*_([¡¿"))
	return (unicode.IsUpper(first) || !unicode.IsLetter(first) && !unicode.IsDigit(first) && first > unicode.MaxLatin1) &&
		(len(strings.Fields(l.bare)) > 2 || l.says.weight > nothing)
}

// readTexts marks the lines of a program that are in a comment or a text of several
// lines.
func (d *document) readTexts() {
	open := ""
	for at := range d.lines {
		l := &d.lines[at]
		l.inText = open != ""
		for text := l.raw[:min(len(l.raw), maxRemark)]; text != ""; {
			if open != "" {
				end := strings.Index(text, open)
				if end < 0 {
					break
				}
				text, open = text[end+len(open):], ""
				continue
			}
			begin, mark := -1, ""
			for _, m := range [...][2]string{{`"""`, `"""`}, {`'''`, `'''`}, {"/*", "*/"}, {"<!--", "-->"}} {
				if i := strings.Index(text, m[0]); i >= 0 && (begin < 0 || i < begin) {
					begin, mark, open = i, m[0], m[1]
				}
			}
			if begin < 0 {
				break
			}
			text = text[begin+len(mark):]
		}
	}
}

// readTable reports whether most lines are records of values.
func (d *document) readTable() {
	if len(d.order) < 3 {
		return
	}
	counts := map[int]int{}
	objects := 0
	for n := range d.order {
		raw := d.at(n).raw
		if commas := max(strings.Count(raw, ","), strings.Count(raw, ";"), strings.Count(raw, "\t")); commas > 1 {
			counts[commas]++
		}
		trimmed := strings.TrimSpace(raw)
		if strings.HasPrefix(trimmed, `"`) && strings.Contains(trimmed, `":`) || strings.Trim(trimmed, "{}[],") == "" {
			objects++
		}
	}
	for _, count := range counts {
		d.tabular = d.tabular || count > 2 && count*2 > len(d.order)
	}
	d.tabular = d.tabular || objects*3 > len(d.order)*2
}

// unreadable reports whether a line is less made of letters than of signs.
func unreadable(bare string) bool {
	letters, all := 0, 0
	for _, r := range bare {
		all++
		if unicode.IsLetter(r) || r == ' ' {
			letters++
		}
	}
	return letters*2 < all
}
