package mcpclient

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// minSecret is the length from which a value is replaced, in bytes: a shorter one is part of
// other words.
const minSecret = 6

// redacted replaces a secret.
const redacted = "[credential]"

// secrets are the values of variables and headers in the settings of a server, which no text of
// the server or of an error may show. It is safe for concurrent use.
type secrets struct {
	mu     sync.Mutex
	values []string
}

// add adds a value, as it is and as it is in an address. A path of this machine is not secret: a
// server of files names it in each result.
func (s *secrets) add(value string) {
	if filepath.IsAbs(value) {
		if _, err := os.Lstat(value); err == nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
		if len(v) >= minSecret && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the whole before its parts
}

// addHeader adds the value of a header that has credentials, and what follows its scheme.
func (s *secrets) addHeader(name, value string) {
	name = strings.ToLower(name)
	for _, part := range []string{"authorization", "cookie", "key", "token", "secret", "password"} {
		if strings.Contains(name, part) {
			s.add(value)
			_, value, _ = strings.Cut(value, " ")
			s.add(value)
			return
		}
	}
}

// redact replaces the values in a text.
func (s *secrets) redact(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, redacted)
	}
	return text
}

// line returns a text of a server or an error on one line, without secrets.
func (s *secrets) line(text string, most int) string {
	return content.Line(s.redact(content.Clean(strings.ToValidUTF8(text, "\uFFFD"))), most)
}

// without removes the tools whose definitions repeat a secret: definitions are recorded.
func (s *secrets) without(tools []*harnessv1.McpDefinition, leftOut []*harnessv1.McpLeftOut) ([]*harnessv1.McpDefinition, []*harnessv1.McpLeftOut) {
	kept := tools[:0:0]
	for _, d := range tools {
		text := d.GetTool() + "\x00" + d.GetTitle() + "\x00" + d.GetDescription() + "\x00" + d.GetSchema() + "\x00" + d.GetHints()
		if clean := content.Clean(text); s.redact(clean) != clean {
			leftOut = append(leftOut, &harnessv1.McpLeftOut{Tool: s.line(d.GetTool(), 128), Reason: "its definition repeats a credential"})
			continue
		}
		kept = append(kept, d)
	}
	return kept, leftOut
}
