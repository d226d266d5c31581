package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// An entry is one line of a Procfile: a process that is kept running.
type entry struct{ name, command string }

// nameForm is what an entry may be called.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// parse reads entries, NAME: COMMAND a line. Empty lines and those that begin
// with # are left out. file is the name that errors give, with the line.
func parse(file string, in io.Reader) ([]entry, error) {
	var entries []entry
	seen := map[string]int{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, command, found := strings.Cut(line, ":")
		name, command = strings.TrimSpace(name), strings.TrimSpace(command)
		switch {
		case !found:
			return nil, fmt.Errorf("%s:%d: want NAME: COMMAND", file, n)
		case !nameForm.MatchString(name):
			return nil, fmt.Errorf("%s:%d: name %q: want letters, digits, - and _, at most 64", file, n, name)
		case command == "":
			return nil, fmt.Errorf("%s:%d: %s has no command", file, n, name)
		case strings.ContainsRune(command, 0):
			return nil, fmt.Errorf("%s:%d: the command of %s holds a NUL", file, n, name)
		case seen[name] != 0:
			return nil, fmt.Errorf("%s:%d: %s is named in line %d already", file, n, name, seen[name])
		}
		seen[name] = n
		entries = append(entries, entry{name, command})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s: no entries", file)
	}
	return entries, nil
}
