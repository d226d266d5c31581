package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/glob"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// maxRule bounds a prefix and a glob of a rule, in bytes.
const maxRule = 1 << 10

// prefix is the words that commands begin with.
type prefix []string

// parsePrefix reads the words of a prefix. The error is a *fault.FieldError.
func parsePrefix(text string) (prefix, error) {
	if len(text) > maxRule {
		return nil, fault.Invalid("prefix", "%d bytes exceed the limit of %d", len(text), maxRule)
	}
	if commands, plain := simpleCommands(text); !plain || len(commands) != 1 {
		return nil, fault.Invalid("prefix", "%q: expected the first words of one command, such as go test: no operators, no variables, "+
			"and no program that runs others, such as sh or sudo", content.Clip(text, 80))
	}
	var words prefix
	for rest := strings.TrimLeft(text, " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		w, n := wordAt(rest)
		if n == 0 || w.expands {
			return nil, fault.Invalid("prefix", "%q: expected words without operators and patterns: quote %q", content.Clip(text, 80), content.Clip(rest, 80))
		}
		words, rest = append(words, w.text), rest[n:]
	}
	return words, nil
}

// fitsCommand reports whether the words are the first of a simple command.
func (p prefix) fitsCommand(command []word) bool {
	if len(command) < len(p) {
		return false
	}
	for i, text := range p {
		if command[i].text != text || command[i].expands {
			return false
		}
	}
	return true
}

// mayFitCommand reports whether the words may be the first of a simple command once the
// shell has replaced patterns: git pus? is git push in a folder with such a file, and a
// pattern may give more than one word.
func (p prefix) mayFitCommand(command []word) bool {
	for i, text := range p {
		switch {
		case i == len(command):
			return false
		case command[i].expands:
			return true
		case command[i].text != text:
			return false
		}
	}
	return true
}

// fits reports whether the words fit a command line: all of its simple commands for a rule
// that allows, one of them, or a line that is not plain, for one that restricts.
func (p prefix) fits(line string, restricts bool) bool {
	commands, plain := simpleCommands(line)
	if restricts {
		return !plain || slices.ContainsFunc(commands, p.mayFitCommand)
	}
	return plain && !slices.ContainsFunc(commands, func(c []word) bool { return !p.fitsCommand(c) })
}

// filePattern is a pattern for paths in a workspace.
type filePattern struct{ glob.Pattern }

// parsePath reads a pattern for paths. The error is a *fault.FieldError.
func parsePath(text string) (*filePattern, error) {
	switch {
	case len(text) > maxRule:
		return nil, fault.Invalid("path", "%d bytes exceed the limit of %d", len(text), maxRule)
	case path.IsAbs(text) || text != path.Clean(text) || text == "." || text == ".." || strings.HasPrefix(text, "../"):
		return nil, fault.Invalid("path", "%q: expected a pattern for paths in the workspace, such as docs/**", content.Clip(text, 80))
	}
	p, err := glob.Parse(text)
	if bad := (*glob.NameError)(nil); errors.As(err, &bad) {
		return nil, fault.Invalid("path", "%q: invalid pattern %q", content.Clip(text, 80), content.Clip(bad.Name, 80))
	} else if err != nil {
		return nil, err
	}
	return &filePattern{p}, nil
}

// fits reports whether the pattern fits a path argument: as written and cleaned for a rule
// that allows, in any spelling for one that restricts.
func (p *filePattern) fits(file string, restricts bool) bool {
	cleaned := path.Clean(file)
	switch {
	case len(file) > maxPath || strings.Count(cleaned, "/") > maxFolders:
		return restricts
	case !restricts:
		return file != "" && !path.IsAbs(cleaned) && !slices.Contains(strings.Split(file, "/"), "..") && p.Match(cleaned)
	case p.Match(cleaned):
		return true
	}
	for i := range cleaned { // the workspace may be any of its folders
		if cleaned[i] == '/' && path.IsAbs(cleaned) && p.Match(cleaned[i+1:]) {
			return true
		}
	}
	return false
}

// fits reports whether the prefix and the path of a rule fit a call. A rule of a prefix fits
// only commands, one of a path only calls with such an argument.
func (r policyRule) fits(call *policyCall, restricts bool) bool {
	if r.prefix != nil {
		line, ok := call.command()
		return ok && r.prefix.fits(line, restricts)
	}
	if r.path != nil {
		file, ok := call.parse()["path"].(string)
		return ok && r.path.fits(file, restricts)
	}
	if r.host != nil {
		if _, ok := call.parse()["url"].(string); !ok {
			return false
		}
		site, ok := call.site()
		return ok && site.In([]sandbox.Host{*r.host}) || !ok && restricts
	}
	return true
}

// site returns the host of the argument url; ok is false if the call has none.
func (c *policyCall) site() (s webtool.Site, ok bool) {
	text, ok := c.parse()["url"].(string)
	if !ok {
		return s, false
	}
	_, s, err := webtool.ParseURL(text)
	return s, err == nil
}

// command returns the command line of a call of a tool that executes commands.
func (c *policyCall) command() (line string, ok bool) {
	if !c.spec.GetAnnotations().GetExecutes() {
		return "", false
	}
	line, ok = c.parse()["command"].(string)
	return line, ok
}
