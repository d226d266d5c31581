package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// finding is one use of a word.
type finding struct {
	file string
	line int
	kind kind
	text string
	word *matcher
}

// scan returns the uses of the words in a file, by line.
func scan(table []matcher, file string, content []byte) ([]finding, error) {
	// An exception names its word.
	texts, err := extract(file, lineException.ReplaceAll(content, nil))
	if err != nil {
		return nil, err
	}
	var found []finding
	for i := range texts {
		t := &texts[i]
		for j := range table {
			m := &table[j]
			if m.kinds&t.kind == 0 {
				continue
			}
			for _, at := range m.search(t.body) {
				found = append(found, finding{file, t.line(at[0]), t.kind, strings.Join(strings.Fields(t.body[at[0]:at[1]]), " "), m})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found, nil
}

//go:embed exceptions.txt
var exceptionsFile string

// exception allows a word in one line, or in a file.
type exception struct {
	where string // for reports
	file  string
	line  int // 0: the whole file
	word  string
	used  bool
}

var (
	// lineException is "lang: word — reason" in a comment.
	lineException = regexp.MustCompile(`\blang: ([a-z ]+?) — ([^\s*][^\n*]*)`)
	// fileException is "path: word — reason" in exceptions.txt.
	fileException = regexp.MustCompile(`^(\S+): ([a-z ]+?) — (\S.*)$`)
)

// entries returns the lines of an embedded list, without comments.
func entries(list string) []string {
	var found []string
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	return found
}

func fileExceptions(list string) ([]*exception, error) {
	var found []*exception
	for _, entry := range entries(list) {
		m := fileException.FindStringSubmatch(entry)
		if m == nil {
			return nil, fmt.Errorf("exceptions.txt: %q: expected path: word — reason", entry)
		}
		found = append(found, &exception{where: "tools/language/exceptions.txt", file: m[1], word: m[2]})
	}
	return found, nil
}

func lineExceptions(file string, content []byte) []*exception {
	var found []*exception
	if !strings.Contains(string(content), "lang: ") {
		return nil
	}
	for i, line := range strings.Split(string(content), "\n") {
		if m := lineException.FindStringSubmatch(line); m != nil {
			found = append(found, &exception{where: fmt.Sprintf("%s:%d", file, i+1), file: file, line: i + 1, word: m[1]})
		}
	}
	return found
}

// allows reports whether the exception is for the finding: an exception in a
// comment is for its line and the next.
func (e *exception) allows(f finding) bool {
	return e.file == f.file && e.word == f.word.name && (e.line == 0 || f.line == e.line || f.line == e.line+1)
}

// within reports whether file is one of the paths or below one.
func within(file string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		p = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(p)), "/")
		return p == "." || file == p || strings.HasPrefix(file, p+"/")
	})
}

// check reports the words that are used without an exception, and the
// exceptions that no word needs. Of a word that may have some uses it reports the
// number, and with paths the places, which are no findings.
func check(from source, paths []string, exceptionList string, out io.Writer) error {
	exceptions, err := fileExceptions(exceptionList)
	if err != nil {
		return err
	}
	table := matchers(words)
	problems := 0
	counted := map[*matcher]int{} // uses of the words that may have some
	err = from(func(file string, content []byte) error {
		if len(paths) > 0 && !within(file, paths) {
			return nil
		}
		found, err := scan(table, file, content)
		if err != nil {
			return err
		}
		inFile := lineExceptions(file, content)
		exceptions := append(inFile, exceptions...)
		for _, f := range found {
			allowed := false
			for _, e := range exceptions {
				if e.allows(f) {
					e.used, allowed = true, true
				}
			}
			if !allowed && f.word.most > 0 {
				if counted[f.word]++; len(paths) == 0 {
					continue
				}
			} else if !allowed {
				problems++
			}
			if !allowed {
				fmt.Fprintf(out, "%s:%d: %s: %q → %s (%s)\n", f.file, f.line, f.kind, f.text, f.word.instead, f.word.name)
			}
		}
		for _, e := range inFile {
			if !e.used {
				problems++
				fmt.Fprintf(out, "%s: the exception for %q is not needed\n", e.where, e.word)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range exceptions {
		if !e.used && (len(paths) == 0 || within(e.file, paths)) {
			problems++
			fmt.Fprintf(out, "%s: the exception for %q in %s is not needed\n", e.where, e.word, e.file)
		}
	}
	for word, n := range counted {
		if len(paths) > 0 {
			continue
		}
		fmt.Fprintf(out, "%s: %d uses in comments, of at most %d: %s\n", word.name, n, word.most, word.instead)
		if n > word.most {
			problems++
			fmt.Fprintf(out, "%s: rewrite the new ones, which check PATH lists; the limit in tools/language/words.go only decreases\n", word.name)
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d findings: tools/language/words.go has the table and main.go says how to write an exception", problems)
	}
	return nil
}
