package toolhost

import (
	"path"
	"strings"
)

const (
	// MaxImportDepth is how far imports of instruction files are followed.
	MaxImportDepth = 5
	// maxImports bounds the imports of one instruction file.
	maxImports = 32
)

var importToken = pattern("(?:^|[ \\t(])@((?:\\\\ |[^ \\t`])+)")

// Import is a file that an instruction file imports.
type Import struct {
	// Target is the text of the import, without the sign.
	Target string
	// Path is its path relative to the root of the repository; empty if it is outside of that.
	Path string
	// Alone reports that there is nothing else on the line.
	Alone bool
}

// Imports returns the files that an instruction file imports as @path, relative to its folder. file is its path relative to the
// root of the repository. Code is not read, and neither is what cannot be a path, such as a name or an address.
func Imports(file, text string) []Import {
	var found []Import
	seen := map[string]bool{}
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if mark := fenceOf(line); mark != "" {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
				fence = ""
			}
			continue
		}
		if fence != "" || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") {
			continue
		}
		for _, match := range importToken().FindAllStringSubmatch(withoutCode(line), -1) {
			target := strings.ReplaceAll(strings.TrimRight(match[1], ".,;:!?)\"'*_"), `\ `, " ")
			if target == "" || seen[target] || len(found) == maxImports || strings.ContainsAny(target, "@\x00") || !strings.ContainsAny(target, "./") {
				continue
			}
			seen[target] = true
			found = append(found, Import{Target: target, Path: importPath(file, target), Alone: strings.Trim(line, " \t-*@") == match[1]})
		}
	}
	return found
}

// importPath returns the path of an import relative to the root of the repository; empty if it leads out of it.
func importPath(file, target string) string {
	if strings.HasPrefix(target, "~") || path.IsAbs(target) {
		return ""
	}
	joined := path.Join(path.Dir(file), target)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return ""
	}
	return joined
}

// Named reports whether an import that cannot be read has to be named: a file was meant.
func (i Import) Named() bool {
	return i.Alone || i.Path == "" || strings.HasSuffix(i.Target, ".md") || strings.HasSuffix(i.Target, ".txt")
}

// fenceOf returns the characters with which a line opens or closes a block of code; empty for another line.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// withoutCode returns a line without the code in it.
func withoutCode(line string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "`")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, after, closed := strings.Cut(rest, "`")
		if !closed {
			return b.String()
		}
		b.WriteByte('`')
		line = after
	}
}
