package toolhost

import (
	"errors"
	"fmt"
	"strings"
)

// maxLinesNamed is the maximum number of lines named for a text that is not unique.
const maxLinesNamed = 5

// ReplaceOnce replaces the only occurrence of old in content and returns the line where it
// begins, counted from 1. The error text is written for the model.
func ReplaceOnce(content, old, replacement string) (edited string, line int, err error) {
	switch old {
	case "":
		return "", 0, errors.New("old is empty; give the text to replace, or use write_file for a new file")
	case replacement:
		return "", 0, errors.New("old and new are the same text; nothing to change")
	}
	offsets := occurrences(content, old)
	switch len(offsets) {
	case 1:
		at := offsets[0]
		return content[:at] + replacement + content[at+len(old):], lineOf(content, at), nil
	case 0:
		return "", 0, errors.New("old was not found in the file" + nearMiss(content, old))
	}
	var lines []string
	for _, at := range offsets[:min(len(offsets), maxLinesNamed)] {
		lines = append(lines, fmt.Sprint(lineOf(content, at)))
	}
	if len(offsets) > maxLinesNamed {
		lines = append(lines, "…")
	}
	return "", 0, fmt.Errorf("old was found %d times (lines %s) and must be found once; add lines around it that make it unique",
		len(offsets), strings.Join(lines, ", "))
}

// occurrences returns the offsets of all matches, including overlapping ones.
func occurrences(content, old string) []int {
	var at []int
	for from := 0; ; {
		i := strings.Index(content[from:], old)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + 1
	}
}

func lineOf(content string, at int) int {
	return strings.Count(content[:at], "\n") + 1
}

// nearMiss returns advice about why old was not found, such as a difference in white space.
func nearMiss(content, old string) string {
	unix := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	if strings.Contains(unix(content), unix(old)) {
		return `: the file's line ends differ (CRLF, "\r\n"); copy them exactly`
	}
	blank := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if wanted := blank(old); wanted != "" && strings.Contains(blank(content), wanted) {
		return ": only spaces, tabs or line breaks differ; read the file again and copy them exactly"
	}
	return "; read it again and copy the text exactly"
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
