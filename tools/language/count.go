package main

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"text/tabwriter"
)

// part is what a file belongs to.
type part int

const (
	product part = iota // Go of cmd, pkg and services without tests
	tests               // tests in Go, test/ and bench/
	others              // docs, protos, clients, deployment, examples, tools
	parts
)

var goProduct = regexp.MustCompile(`^(cmd|pkg|services)/.*\.go$`)

func partOf(file string) part {
	switch {
	case strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") || strings.HasPrefix(file, "bench/"):
		return tests
	case goProduct.MatchString(file):
		return product
	}
	return others
}

// tally is what one part uses.
type tally struct {
	comments    int // lines of comments in Go
	unexported  int // unexported types
	participles int // of these, those named by a participle
	words       map[string]map[kind]int
}

var (
	commentLine = regexp.MustCompile(`(?m)^\s*//`)
	unexported  = regexp.MustCompile(`(?m)^type ([a-z]\w*) `)
)

// measure counts what the files of a source use, by part.
func measure(from source) ([parts]tally, error) {
	var result [parts]tally
	for p := range result {
		result[p].words = map[string]map[kind]int{}
	}
	table := matchers(words)
	err := from(func(file string, content []byte) error {
		t := &result[partOf(file)]
		found, err := scan(table, file, content)
		if err != nil {
			return err
		}
		for _, f := range found {
			if t.words[f.word.name] == nil {
				t.words[f.word.name] = map[kind]int{}
			}
			t.words[f.word.name][f.kind]++
		}
		if path.Ext(file) == ".go" {
			t.comments += len(commentLine.FindAll(content, -1))
			for _, m := range unexported.FindAllSubmatch(content, -1) {
				t.unexported++
				for i := range table {
					if table[i].kinds&typeName != 0 && len(table[i].search(split(string(m[1])))) > 0 {
						t.participles++
					}
				}
			}
		}
		return nil
	})
	return result, err
}

// count prints how often each word is used, exceptions included, by kind of
// text, apart for the product, tests and the rest.
func count(from source, out io.Writer) error {
	result, err := measure(from)
	if err != nil {
		return err
	}
	kinds := []kind{comment, identifier | function | typeName, message, document}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tproduct\t\t\t\ttests\t\t\t\tother\t\t\t\t")
	fmt.Fprintln(w, "word"+strings.Repeat("\tcomments\tnames\tmessages\tdocs", int(parts))+"\t")
	totals := make([]int, int(parts)*len(kinds))
	for _, row := range words {
		fmt.Fprint(w, row.name)
		for p := range result {
			for i, in := range kinds {
				n := 0
				for k, times := range result[p].words[row.name] {
					if k&in != 0 {
						n += times
					}
				}
				totals[p*len(kinds)+i] += n
				fmt.Fprintf(w, "\t%d", n)
			}
		}
		fmt.Fprintln(w, "\t")
	}
	fmt.Fprint(w, "all")
	for _, n := range totals {
		fmt.Fprintf(w, "\t%d", n)
	}
	fmt.Fprintln(w, "\t")
	if err := w.Flush(); err != nil {
		return err
	}
	for p, name := range []string{"product", "tests", "other"} {
		fmt.Fprintf(out, "%s: %d comment lines in Go, %d unexported types, %d of them named by a participle\n",
			name, result[p].comments, result[p].unexported, result[p].participles)
	}
	return nil
}
