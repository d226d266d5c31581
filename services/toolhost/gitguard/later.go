package gitguard

import (
	"fmt"
	"slices"
	"strings"
)

// Some programs run only when the user of git does something more: continues a rebase, or commits
// in a repository whose hook calls a file of the project. Calls may change these, since it is ordinary
// work. Later names them.

// maxCalled bounds the files of a hook that are looked for.
const maxCalled = 200

// Later returns the programs that git runs when its user continues, which the call has changed.
func Later(before, after *Snapshot) []string {
	c := comparison{before: before, after: after}
	var names []string
	for _, folder := range sorted(after.Repositories) {
		now := after.Repositories[folder]
		was := c.basesOf(folder).same
		if was == nil {
			was = &Repository{}
		}
		for _, line := range Execs(now.Todo) {
			if !slices.Contains(Execs(was.Todo), line) {
				names = append(names, clip(line)+" in "+c.shown(folder+"/"+Todo))
			}
		}
		for _, path := range sorted(now.Called) {
			if was.Called[path] != now.Called[path] {
				names = append(names, fmt.Sprintf("%s, which a hook of %s calls", c.shown(path), c.shown(folder)))
			}
		}
	}
	return names
}

// LaterText returns the note in the result of a call about programs that run later; empty for none.
func LaterText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("[Changed, and run by git outside of the sandbox when the user continues the rebase or the hook runs: %s. Tell the user.]", list(names))
}

// Todo is the file with the steps of a rebase that is not finished, in a git folder.
const Todo = "rebase-merge/git-rebase-todo"

// Execs returns the lines of a todo file that run programs.
func Execs(todo Entry) []string {
	var lines []string
	for line := range strings.Lines(string(todo.Data)) {
		line = strings.TrimSpace(line)
		if word, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " "); word == "exec" || word == "x" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Called returns the words of a hook that may be paths of files, relative to the work tree.
func Called(hook Entry) []string {
	if !hook.isText() || !hook.Executable || strings.ContainsRune(string(hook.Data), 0) {
		return nil
	}
	var words []string
	for _, word := range strings.FieldsFunc(string(hook.Data), func(r rune) bool {
		return r != '.' && r != '/' && r != '_' && r != '-' && r != '+' && r != '@' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z') && r < 0x80
	}) {
		word = strings.TrimPrefix(word, "./")
		if strings.ContainsAny(word, "./") && !strings.HasPrefix(word, "/") && !slices.Contains(words, word) && len(words) < maxCalled {
			words = append(words, word)
		}
	}
	return words
}
