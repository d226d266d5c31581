package toolhost

import (
	"errors"
	"fmt"
	"strings"
)

// maxLinesNamed is how many places of an ambiguous text are named.
const maxLinesNamed = 5

// ReplaceOnce replaces the one occurrence of old in content and returns the
// line, from 1, at which it begins. The error's text is for the model.
func ReplaceOnce(content, old, replacement string) (edited string, line int, err error) {
	switch old {
	case "":
		return "", 0, errors.New("old is empty; give the text to replace, or use write_file for a new file")
	case replacement:
		return "", 0, errors.New("old and new are the same text; nothing to change")
	}
	places := occurrences(content, old)
	switch len(places) {
	case 1:
		at := places[0]
		return content[:at] + replacement + content[at+len(old):], lineOf(content, at), nil
	case 0:
		return "", 0, errors.New("old was not found in the file" + whyMissing(content, old))
	}
	var lines []string
	for _, at := range places[:min(len(places), maxLinesNamed)] {
		lines = append(lines, fmt.Sprint(lineOf(content, at)))
	}
	if len(places) > maxLinesNamed {
		lines = append(lines, "…")
	}
	return "", 0, fmt.Errorf("old was found %d times (lines %s) and must be found once; add lines around it that make it unique",
		len(places), strings.Join(lines, ", "))
}

// occurrences are the offsets of all matches, overlapping ones too.
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

// whyMissing says which difference alone keeps old from being found.
func whyMissing(content, old string) string {
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
