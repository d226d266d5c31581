// Package gitignore decides which paths the rules of .gitignore files leave out, as git does.
//
// A File has the rules of one file and decides about paths below its folder. All files below a
// folder that is left out are left out too, whatever the rules: the caller does not descend
// into such a folder. Paths are bytes, as for git: ? matches one byte.
//
// The format is that of gitignore(5), the matching that of git's wildmatch.c with
// WM_PATHNAME. Matching takes at most time proportional to the product of the lengths of the
// pattern and the path.
package gitignore

import (
	"strings"
)

// File has the rules of one .gitignore file. The zero value has none.
type File struct{ rules []rule }

// rule is a line of a file.
type rule struct {
	// negate makes the rule keep what it matches.
	negate bool
	// folder restricts the rule to folders.
	folder bool
	// names are the parts of the pattern between slashes. A rule with one name, if it is not
	// anchored, is about the last name of a path.
	names    []name
	anchored bool
}

// Parse returns the rules of a file. Lines that are no pattern have no effect.
func Parse(content string) *File {
	f := &File{}
	for line := range strings.Lines(strings.TrimPrefix(content, "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if r, ok := parseRule(line); ok {
			f.rules = append(f.rules, r)
		}
	}
	return f
}

// Match reports whether the rules of the file leave out a path below its folder, and whether
// any rule matches it. folder reports that the path is a folder.
func (f *File) Match(path string, folder bool) (leftOut, decided bool) {
	if f == nil {
		return false, false
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(f.rules) - 1; i >= 0; i-- {
		r := &f.rules[i]
		if r.folder && !folder {
			continue
		}
		if !r.anchored && r.names[0].match(last) || r.anchored && matchNames(r.names, path) {
			return !r.negate, true
		}
	}
	return false, false
}

// parseRule returns the rule of a line; it is not ok for a line without one.
func parseRule(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	line = withoutTrailingSpace(line)
	line, r.negate = strings.CutPrefix(line, "!")
	if line, r.folder = strings.CutSuffix(line, "/"); r.folder && strings.HasSuffix(line, `\`) {
		line += "/" // the slash was escaped
		r.folder = false
	}
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	for _, part := range strings.Split(strings.ReplaceAll(line, `\/`, "/"), "/") {
		n, ok := parseName(part)
		if !ok {
			return rule{}, false
		}
		r.names = append(r.names, n)
	}
	if !r.anchored && r.names[0].kind == anyFolders {
		r.names[0] = name{kind: suffix} // every name
	}
	return r, true
}

// withoutTrailingSpace removes spaces at the end that no backslash precedes.
func withoutTrailingSpace(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// matchNames reports whether the parts of a pattern match the names of a path, ** any number
// of them. The last ** matches at least one, because foo/** is what foo contains.
func matchNames(names []name, path string) bool {
	// back is the position after the newest **, and rest the path that it has not taken.
	back, rest := -1, ""
	at := 0
	for {
		if at < len(names) && names[at].kind == anyFolders {
			if at == len(names)-1 {
				return path != ""
			}
			at++
			back, rest = at, path
			continue
		}
		if path == "" && at == len(names) {
			return true
		}
		if path != "" && at < len(names) {
			first, others, _ := strings.Cut(path, "/")
			if names[at].match(first) {
				at, path = at+1, others
				continue
			}
		}
		if back < 0 || rest == "" {
			return false
		}
		_, rest, _ = strings.Cut(rest, "/")
		at, path = back, rest
	}
}
