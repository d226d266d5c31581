package main

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strings"
)

//go:embed allowed.txt
var allowedFile string

// most is how many functions allowed.txt may name.
const most = 20

// allowedLine is "package.Function — reason".
var allowedLine = regexp.MustCompile(`^(\w+\.\w+) — (\S.*)$`)

// check reports the waits that the list does not name, and the names of the
// list that no wait needs.
func check(found []wait, list string, out io.Writer) error {
	allowed := map[string]bool{} // by function: whether a wait needed it
	problems := 0
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := allowedLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("allowed.txt: %q: expected package.Function — reason", line)
		}
		if _, duplicate := allowed[m[1]]; duplicate {
			return fmt.Errorf("allowed.txt: %q: duplicate", m[1])
		}
		allowed[m[1]] = false
	}
	if len(allowed) > most {
		return fmt.Errorf("allowed.txt: %d names exceed %d: shorten a wait instead", len(allowed), most)
	}
	for _, w := range found {
		if _, ok := allowed[w.function]; ok {
			allowed[w.function] = true
			continue
		}
		problems++
		fmt.Fprintf(out, "%s:%d: %s waits %s: wait for a signal, use testing/synctest or a shorter time, or name it in tools/waits/allowed.txt\n",
			w.file, w.line, w.function, w.long)
	}
	for name, needed := range allowed {
		if !needed {
			problems++
			fmt.Fprintf(out, "tools/waits/allowed.txt: %s: not needed\n", name)
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d findings", problems)
	}
	return nil
}
