package agentfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse parses the text as one YAML document; nil if it is not one.
func (d *decoder) parse(data []byte) *yaml.Node {
	if !utf8.Valid(data) {
		d.report.add(d.src, 1, 1, "not UTF-8")
		return nil
	}
	reader := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.report.add(d.src, 1, 1, "the file is empty")
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	var more yaml.Node
	switch err := reader.Decode(&more); {
	case err == nil:
		d.errorf(&more, "unexpected second document: a file contains one")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		d.report.add(d.src, 1, 1, "the file is empty")
		return nil
	}
	return resolve(doc.Content[0])
}

var (
	yamlLine   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+): `) })
	yamlAnchor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unknown anchor '([^']+)' referenced`) })
	// yamlParser matches the errors of the parser, whose lines count from 0; those of
	// the scanner count from 1.
	yamlParser = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`did not find expected (node content|key|'-' indicator|',' or|<)|duplicate %|undefined tag`)
	})
)

// syntax converts an error of the YAML parser to a problem. It has at most a line: the
// column is that of the first character.
func (d *decoder) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = strings.Replace(text, m[0], "", 1)
		if yamlParser().MatchString(text) {
			line++
		}
	}
	line = min(line, len(d.src.lines))
	column := d.src.firstOf(line)
	if m := yamlAnchor().FindStringSubmatch(text); m != nil {
		if before, _, found := strings.Cut(string(d.src.text), "*"+m[1]); found {
			line, column = d.src.position(len([]rune(before)))
		}
	}
	if slices.Contains(d.src.text[d.src.offset(line, 1):d.src.offset(line, d.src.firstOf(line))], '\t') {
		text = "a tab at the beginning of the line: indent with spaces"
	}
	d.report.add(d.src, line, column, "not YAML: %s", text)
}
