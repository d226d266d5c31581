// Command language checks that comments, names, texts for people and docs are
// written in the field's words: words.go is the table of the words that are not
// used, with what to write instead.
//
//	language check [PATH...]   reports file:line: word → suggestion and exits 1 if there is any
//	language count [REV|DIR]   prints how often each word is used in a commit or a checkout
//
// Without paths, check covers the repository. With paths, it covers those, and also
// lists the uses that a word may still have (most in words.go), without failing.
//
// An exception is a comment in the same line or the line before,
//
//	// lang: behind — the reader is behind the log
//
// or a line of exceptions.txt. Texts for models are not read: models.go lists
// where they are. Generated code, testdata and fenced code in Markdown are not
// read either.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	root := strings.TrimSpace(string(top))
	switch {
	case len(args) >= 1 && args[0] == "check":
		return check(checkout(root), args[1:], exceptionsFile, out)
	case len(args) == 1 && args[0] == "count":
		return count(checkout(root), out)
	case len(args) == 2 && args[0] == "count":
		if info, err := os.Stat(args[1]); err == nil && info.IsDir() {
			return count(checkout(args[1]), out)
		}
		return count(commit(root, args[1]), out)
	}
	return fmt.Errorf("expected check [PATH...] or count [REV|DIR]")
}
