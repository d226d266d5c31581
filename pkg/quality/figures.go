package quality

import (
	"regexp"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const shortSentence = 30 // words

var (
	headingLine = regexp.MustCompile(`^ {0,3}#{1,6}\s+\S`)
	listLine    = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,3}[.)])\s+`)
	tableLine   = regexp.MustCompile(`^\s*\|?[\s:|-]*-{3,}[\s:|-]*$`)
	sentenceEnd = regexp.MustCompile(`[.!?]+["”')\]]*(?:\s+|$)|[。！？]+`)
)

// Figures returns the counts by which the form of a Markdown text is judged. Code blocks count for
// nothing; headings and tables are no sentences; a list item is at least one sentence but no
// paragraph.
func Figures(text string) *harnessv1.DocumentFigures {
	f := &harnessv1.DocumentFigures{}
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			f.Paragraphs++
			countSentences(f, strings.Join(paragraph, " "))
		}
		paragraph = nil
	}
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			end()
			fence = trimmed[:3]
		case trimmed == "":
			end()
		case headingLine.MatchString(line):
			end()
			f.Headings++
		case tableLine.MatchString(line): // or a rule
			end()
			f.List = f.List || strings.Contains(line, "|")
		case strings.HasPrefix(trimmed, "|"):
			end()
		case listLine.MatchString(line):
			end()
			f.List = true
			countSentences(f, listLine.ReplaceAllString(line, ""))
		default:
			paragraph = append(paragraph, trimmed)
		}
	}
	end()
	return f
}

// countSentences counts the sentences of a text without line breaks.
func countSentences(f *harnessv1.DocumentFigures, text string) {
	for _, sentence := range sentenceEnd.Split(text, -1) {
		words := len(strings.Fields(sentence))
		if words == 0 {
			continue
		}
		f.Sentences++
		if words <= shortSentence {
			f.ShortSentences++
		}
	}
}
