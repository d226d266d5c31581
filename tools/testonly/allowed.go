package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed allowed.txt
var allowedFile string

// most is how many names allowed.txt may have.
const most = 10

// allowedLine is "name — reason".
var allowedLine = regexp.MustCompile(`^([\w/.]+) — \S.*$`)

// readAllowed returns the names of a list.
func readAllowed(list string) (map[string]bool, error) {
	allowed := map[string]bool{}
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := allowedLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("allowed.txt: %q: expected name — reason", line)
		}
		if allowed[m[1]] {
			return nil, fmt.Errorf("allowed.txt: %q: duplicate", m[1])
		}
		allowed[m[1]] = true
	}
	if len(allowed) > most {
		return nil, fmt.Errorf("allowed.txt: %d names exceed %d", len(allowed), most)
	}
	return allowed, nil
}
