package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// ReadText returns the text of the file that a flag names, - for stdin.
func (a *Console) ReadText(flag, file string) (string, error) {
	if file == "-" {
		return ReadText(flag, "", a.In)
	}
	return ReadText(flag, file, nil)
}

// ReadText returns the text of a file, or of stdin if that is given. name is what names it in
// an error.
func ReadText(name, file string, stdin io.Reader) (string, error) {
	from, source := name+": stdin", stdin
	if stdin == nil {
		f, err := os.Open(file)
		if err != nil {
			return "", FileError(name, err)
		}
		defer f.Close()
		from, source = name+": "+file, f
	}
	raw, err := io.ReadAll(io.LimitReader(source, maxSaid+1))
	if err != nil {
		return "", FileError(name, err)
	}
	return string(raw), CheckSaid(from, string(raw))
}

// CheckSaid refuses a text that a run does not take.
func CheckSaid(from, text string) error {
	switch {
	case len(text) > maxSaid:
		return fmt.Errorf("%s: larger than %d bytes", from, maxSaid)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s: not UTF-8", from)
	}
	return nil
}

// maxSaid bounds a goal or message, in bytes.
const maxSaid = 3 << 20

// Said returns a goal or message: the words, or all of stdin for "-".
func (a *Console) Said(words []string, what string) (string, error) {
	text := strings.Join(words, " ")
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(a.In, maxSaid+1))
		if err != nil {
			return "", fmt.Errorf("%s: stdin: %w", what, err)
		}
		text = string(raw)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("%s is missing: write it after the flags, or - to read it from stdin", what)
	case len(text) > maxSaid:
		return "", fmt.Errorf("%s: larger than %d bytes: write the text to a file in the workspace, and name the file instead", what, maxSaid)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s: not UTF-8", what)
	}
	return strings.TrimRight(text, "\n"), nil
}
