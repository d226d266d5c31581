package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// durationFlag is a duration above zero.
type durationFlag struct {
	d time.Duration
}

// UnmarshalText parses the format of time.ParseDuration.
func (f *durationFlag) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: expected a duration above zero, such as 90s or 1h30m", text)
	}
	f.d = d
	return nil
}

// effortFlag is how much the model reasons.
type effortFlag struct{ effort harnessv1.Effort }

// UnmarshalText parses the name of an effort, in lower case.
func (f *effortFlag) UnmarshalText(text []byte) error {
	var known []string
	for i := range harnessv1.Effort(0).Descriptor().Values().Len() {
		v := harnessv1.Effort(0).Descriptor().Values().Get(i)
		if v.Number() == 0 {
			continue
		}
		name := agentfile.EnumName(v)
		if name == string(text) {
			f.effort = harnessv1.Effort(v.Number())
			return nil
		}
		known = append(known, name)
	}
	return fmt.Errorf("%q: expected one of %s", text, strings.Join(known, ", "))
}

// maxSaid bounds a goal or message, in bytes.
const maxSaid = 3 << 20

// said returns a goal or message: the words, or all of stdin for "-".
func (a *app) said(words []string, what string) (string, error) {
	text := strings.Join(words, " ")
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(a.in, maxSaid+1))
		if err != nil {
			return "", fmt.Errorf("%s: stdin: %w", what, err)
		}
		text = string(raw)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("%s is missing: write it after the flags, or - to read it from stdin", what)
	case len(text) > maxSaid:
		return "", fmt.Errorf("%s: larger than %d bytes", what, maxSaid)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s: not UTF-8", what)
	}
	return strings.TrimRight(text, "\n"), nil
}

func isBrokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// runName checks the form of a run's id.
func runName(flag, id string) error {
	if !nameForm().MatchString(id) {
		return fmt.Errorf("%s: %q: expected letters, digits, - and _, at most 64", flag, id)
	}
	return nil
}
