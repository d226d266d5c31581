package schemagen

import (
	"io/fs"
	"regexp"
	"strings"
)

// comments maps full names to the comments of messages, fields and enum values.
// Descriptors in a Go program have none, so they are read from the source.
type comments map[string]string

var (
	opens  = regexp.MustCompile(`^(message|enum|oneof|service)\s+(\w+)\s*\{`)
	fields = regexp.MustCompile(`^(?:optional\s+|repeated\s+)?(?:[\w.]+\s+|map<[\w.]+, [\w.]+>\s+)?(\w+)\s*=\s*\d+`)
)

// readComments reads the protos of a directory. They are formatted by buf: one statement
// a line, comments on separate lines.
func readComments(protos fs.FS) (comments, error) {
	names, err := fs.Glob(protos, "*.proto")
	if err != nil {
		return nil, err
	}
	found := comments{}
	for _, name := range names {
		text, err := fs.ReadFile(protos, name)
		if err != nil {
			return nil, err
		}
		found.read(string(text))
	}
	return found, nil
}

func (c comments) read(text string) {
	var block []string
	scope := []string{"harness.v1"}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "//"):
			block = append(block, strings.TrimSpace(strings.TrimPrefix(line, "//")))
			continue
		case opens.MatchString(line):
			m := opens.FindStringSubmatch(line)
			name := m[2]
			if m[1] == "oneof" { // its fields belong to the message
				name = ""
			}
			scope = append(scope, name)
			c[full(scope)] = strings.Join(block, " ")
			if strings.HasSuffix(line, "}") {
				scope = scope[:len(scope)-1]
			}
		case line == "}":
			if len(scope) > 1 {
				scope = scope[:len(scope)-1]
			}
		case fields.MatchString(line):
			c[full(append(scope, fields.FindStringSubmatch(line)[1]))] = strings.Join(block, " ")
		}
		block = nil
	}
}

func full(scope []string) string {
	var parts []string
	for _, part := range scope {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}
