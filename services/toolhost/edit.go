package toolhost

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxLinesNamed is the maximum number of lines named for a text that is not unique.
	maxLinesNamed = 5
	// maxOccurrences is how many occurrences of a text are counted: overlapping ones of a
	// long text in a large file would take minutes.
	maxOccurrences = 100
)

// ReplaceOnce replaces the only occurrence of old in content and returns the line where it
// begins, counted from 1. Line ends need not match: where old occurs with other ones alone, or has none,
// replacement gets those of the place. The error text is written for the model.
func ReplaceOnce(content, old, replacement string) (edited string, line int, err error) {
	switch old {
	case "":
		return "", 0, errors.New("old is empty; give the text to replace, or use write_file for a new file")
	case replacement:
		return "", 0, errors.New("old and new are the same text; nothing to change")
	}
	places := findText(content, old)
	switch len(places) {
	case 1:
		at := places[0]
		edited = content[:at.from] + replacementAt(content, at, old, replacement) + content[at.to:]
		if edited == content {
			return "", 0, errors.New("old and new are the same text in this file, whose line ends stay; nothing to change")
		}
		return edited, lineOf(content, at.from), nil
	case 0:
		return "", 0, errors.New("old was not found in the file" + nearMiss(content, old))
	}
	var lines []string
	for _, at := range places[:min(len(places), maxLinesNamed)] {
		lines = append(lines, fmt.Sprint(lineOf(content, at.from)))
	}
	if len(places) > maxLinesNamed {
		lines = append(lines, "…")
	}
	count := fmt.Sprint(len(places))
	if len(places) == maxOccurrences {
		count = "at least " + count
	}
	return "", 0, fmt.Errorf("old was found %s times (lines %s) and must be found once; add lines around it that make it unique",
		count, strings.Join(lines, ", "))
}

// occurrences returns the offsets of the first maxOccurrences matches, including
// overlapping ones.
func occurrences(content, old string) []int {
	var at []int
	for from := 0; len(at) < maxOccurrences; {
		i := strings.Index(content[from:], old)
		if i < 0 {
			break
		}
		at = append(at, from+i)
		from += i + 1
	}
	return at
}

func lineOf(content string, at int) int {
	return strings.Count(content[:at], "\n") + 1
}

// nearMiss returns advice about why old was not found, such as a difference in white space.
func nearMiss(content, old string) string {
	if wanted := blank(old); wanted != "" && strings.Contains(blank(content), wanted) {
		return ": only spaces, tabs or line breaks differ; read the file again and copy them exactly"
	}
	return "; read it again and copy the text exactly"
}

// blank returns a text with one space for each sequence of white space, without any at its
// ends. It needs no memory for each word: a file can have millions.
func blank(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for word := range strings.FieldsSeq(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// CountLines returns the number of lines of a text. The last one need not end with a
// line break.
func CountLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
