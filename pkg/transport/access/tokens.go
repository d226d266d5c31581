// Package access decides which callers may use a gateway. Bearer tokens come from a
// file, each valid for all namespaces or for some, and are checked before gRPC and HTTP
// requests alike.
//
// A token grants its namespaces and nothing else. It never appears in a log, an error or
// stored data; memory holds only digests.
package access

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
)

// MinToken is the minimum length of a token, in bytes.
const MinToken = 16

// tokenShape is the form of a bearer token by RFC 6750.
var (
	tokenShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`) })
	hexToken   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F]{32,}$`) })
)

// Caller is the holder of a token.
type Caller struct {
	// Namespaces are those that the token is valid for; nil means all.
	Namespaces []string
}

// May reports whether the token is valid for a namespace.
func (c Caller) May(namespace string) bool {
	return c.Namespaces == nil || slices.Contains(c.Namespaces, namespace)
}

// Tokens are the tokens of a file. It is safe for concurrent use.
type Tokens struct {
	file *reread.Value[[]entry]
}

// entry is a token, stored as its digest.
type entry struct {
	digest [sha256.Size]byte
	caller Caller
}

// Open reads a file of tokens, one a line: `TOKEN` for all namespaces, or `TOKEN
// NS[,NS…]`. Empty lines and lines that begin with # are ignored. The file is read again
// when it changes; a change that cannot be read is logged, and the previous tokens stay
// valid.
func Open(path string, logger *slog.Logger) (*Tokens, error) {
	parse := func() ([]entry, error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		entries, err := parseTokens(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return entries, nil
	}
	file, err := reread.New(parse, func(err error) {
		logger.Warn("the tokens cannot be read; the previous ones stay valid", "error", err)
	}, path)
	if err != nil {
		return nil, err
	}
	return &Tokens{file: file}, nil
}

// parseTokens parses a file. Errors name the line and never contain a token.
func parseTokens(raw []byte) ([]entry, error) {
	var entries []entry
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		token := fields[0]
		switch {
		case len(token) < MinToken:
			return nil, fmt.Errorf("line %d: a token must have at least %d characters; `openssl rand -hex 32` creates one", n, MinToken)
		case !tokenShape().MatchString(token):
			return nil, fmt.Errorf("line %d: a token must consist of letters, digits and . _ ~ + / -", n)
		case len(fields) > 2:
			return nil, fmt.Errorf("line %d: expected TOKEN or TOKEN NAMESPACE,NAMESPACE without spaces", n)
		}
		e := entry{digest: sha256.Sum256([]byte(token))}
		if slices.ContainsFunc(entries, func(o entry) bool { return o.digest == e.digest }) {
			return nil, fmt.Errorf("line %d: duplicate token", n)
		}
		if len(fields) == 2 && fields[1] != "*" {
			e.caller.Namespaces = strings.Split(fields[1], ",")
			for _, ns := range e.caller.Namespaces {
				// The value is not shown, and text that looks like a token is refused:
				// in a line whose columns were swapped it is one.
				if !runlog.Name.MatchString(ns) || hexToken().MatchString(ns) {
					return nil, fmt.Errorf("line %d: the text after the token is not a namespace: expected letters, digits, - and _, at most 64, and not 32 or more hexadecimal digits", n)
				}
			}
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("missing token: write one on a line; `openssl rand -hex 32` creates one")
	}
	return entries, nil
}

// Find returns the caller of a token. Its run time does not depend on similar tokens.
func (t *Tokens) Find(token string) (c Caller, ok bool) {
	digest := sha256.Sum256([]byte(token))
	for _, e := range t.file.Get() {
		if subtle.ConstantTimeCompare(e.digest[:], digest[:]) == 1 {
			c, ok = e.caller, true
		}
	}
	return c, ok
}

type callerKey struct{}

// with adds the caller to a context.
func with(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// of returns the caller of a context; without a check every caller may do everything.
func of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
