package main

import (
	"path"
	"regexp"
	"strings"
)

// text is a piece of a file in which words are searched.
type text struct {
	kind  kind
	body  string
	lines []int // the line in the file of each line of body; the last one counts for what follows
}

// line returns the line in the file of an offset in the body.
func (t *text) line(offset int) int {
	return t.lines[min(strings.Count(t.body[:offset], "\n"), len(t.lines)-1)]
}

func oneLine(k kind, body string, line int) text {
	return text{kind: k, body: strings.ReplaceAll(body, "\n", " "), lines: []int{line}}
}

// extract returns the texts of a file, whose format follows from its name; none of
// a file in a format that is not read.
func extract(file string, content []byte) (texts []text, err error) {
	source := string(content)
	base := path.Base(file)
	switch ext := path.Ext(file); {
	case ext == ".go":
		return goTexts(file, content)
	case ext == ".md":
		return markdown(source), nil
	case ext == ".proto":
		return slashComments(source, comment), nil
	case ext == ".ts" || ext == ".mts" || ext == ".mjs" || ext == ".js":
		return slashComments(source, comment), nil
	case ext == ".py":
		return python(source), nil
	case ext == ".svg":
		return svg(source), nil
	case strings.HasPrefix(file, "deploy/") && ext == ".json":
		return values(source), nil
	case strings.HasPrefix(file, "deploy/") && ext == ".yaml":
		return append(hashComments(source), values(source)...), nil
	case ext == ".yaml" || ext == ".yml":
		return hashComments(source), nil
	case ext == ".sh" || ext == ".toml" || ext == ".conf" || ext == ".env",
		base == "Makefile" || base == "Dockerfile" || base == "Procfile" || base == ".gitignore" || base == ".dockerignore",
		strings.HasPrefix(source, "#!"):
		return hashComments(source), nil
	}
	return nil, nil
}

// gather joins lines that follow each other into one text, so that a phrase is
// found across the end of a line.
type gather struct {
	kind  kind
	texts []text
	open  bool
}

func (g *gather) add(body string, line int) {
	if !g.open {
		g.texts = append(g.texts, text{kind: g.kind})
		g.open = true
	}
	t := &g.texts[len(g.texts)-1]
	if len(t.lines) > 0 {
		t.body += "\n"
	}
	t.body += body
	t.lines = append(t.lines, line)
}

func (g *gather) end() { g.open = false }

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	fence      = regexp.MustCompile("^\\s*(```|~~~)")
)

// markdown returns the paragraphs, without code and the targets of links. A
// table or list is one paragraph.
func markdown(source string) []text {
	g := gather{kind: document}
	inFence := false
	for i, line := range strings.Split(source, "\n") {
		if fence.MatchString(line) {
			inFence = !inFence
			g.end()
			continue
		}
		if inFence || strings.TrimSpace(line) == "" {
			g.end()
			continue
		}
		line = inlineCode.ReplaceAllString(line, "``")
		g.add(linkTarget.ReplaceAllString(line, "]"), i+1)
	}
	return g.texts
}

// hashComment finds a comment of a shell, of YAML and the like: the # starts the line or follows white space.
var hashComment = regexp.MustCompile(`^\s*#+(.*)$|\s##?\s(.*)$`)

func hashComments(source string) []text {
	g := gather{kind: comment}
	for i, line := range strings.Split(source, "\n") {
		m := hashComment.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, "#!") {
			g.end()
			continue
		}
		if m[2] != "" { // at the end of a line: a text by itself
			g.end()
		}
		g.add(m[1]+m[2], i+1)
	}
	return g.texts
}

// value finds what a person reads in a rule, a dashboard or a manifest.
var value = regexp.MustCompile(`(?i)^\s*(?:- )?"?(?:summary|description|title|message|legendFormat|action|runbook|meaning)"?:\s+(.+)$`)

func values(source string) []text {
	var texts []text
	for i, line := range strings.Split(source, "\n") {
		if m := value.FindStringSubmatch(line); m != nil {
			texts = append(texts, oneLine(message, m[1], i+1))
		}
	}
	return texts
}

var svgText = regexp.MustCompile(`>([^<>]+)<`)

func svg(source string) []text {
	var texts []text
	for i, line := range strings.Split(source, "\n") {
		for _, m := range svgText.FindAllStringSubmatch(line, -1) {
			texts = append(texts, oneLine(document, m[1], i+1))
		}
	}
	return texts
}

// slashComments reads // and /* */ of a language whose strings are in ", ' or `.
func slashComments(source string, k kind) []text {
	g := gather{kind: k}
	var quote byte // of the string that is open
	inBlock := false
	for i, line := range strings.Split(source, "\n") {
		at := -1 // where a comment starts in the line
		if inBlock {
			at = 0
		}
		if quote != '`' {
			quote = 0
		}
		for j := 0; j < len(line) && at < 0; j++ {
			switch c := line[j]; {
			case quote != 0:
				switch c {
				case '\\':
					j++
				case quote:
					quote = 0
				}
			case c == '"' || c == '\'' || c == '`':
				quote = c
			case strings.HasPrefix(line[j:], "//"):
				at = j
			case strings.HasPrefix(line[j:], "/*"):
				at, inBlock = j, true
			}
		}
		if at < 0 {
			g.end()
			continue
		}
		body := line[at:]
		if inBlock {
			if before, _, closed := strings.Cut(body, "*/"); closed {
				body, inBlock = before, false
			}
		}
		if strings.TrimSpace(line[:at]) != "" { // after code: a text by itself
			g.end()
		}
		g.add(strings.TrimLeft(body, "/* \t"), i+1)
	}
	return g.texts
}

// python reads # comments, and docstrings: strings in three quotes that start a line.
func python(source string) []text {
	g := gather{kind: comment}
	quotes := "" // of the docstring that is open
	for i, line := range strings.Split(source, "\n") {
		trimmed := strings.TrimSpace(line)
		if quotes == "" {
			for _, q := range []string{`"""`, `'''`} {
				if strings.HasPrefix(trimmed, q) {
					g.end()
					quotes, trimmed = q, trimmed[3:]
				}
			}
		}
		if quotes != "" {
			body, _, closed := strings.Cut(trimmed, quotes)
			g.add(body, i+1)
			if closed {
				quotes = ""
				g.end()
			}
			continue
		}
		m := hashComment.FindStringSubmatch(line)
		if m == nil {
			g.end()
			continue
		}
		if m[2] != "" {
			g.end()
		}
		g.add(m[1]+m[2], i+1)
	}
	return g.texts
}
