// Package access decides who may call a gateway: bearer tokens from a file, each
// for all namespaces or for some, checked in front of gRPC and HTTP alike.
//
// A token stands for its namespaces only. It never appears in a log, an error or
// in what the gateway stores; in memory there are digests.
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

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
)

// MinToken is the least length of a token, in bytes.
const MinToken = 16

// tokenShape is what RFC 6750 lets a bearer token consist of.
var (
	tokenShape = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	hexToken   = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
)

// Caller is who has shown a token.
type Caller struct {
	// Namespaces that the token is for; nil means all.
	Namespaces []string
}

// May says whether the token is for a namespace.
func (c Caller) May(namespace string) bool {
	return c.Namespaces == nil || slices.Contains(c.Namespaces, namespace)
}

// Tokens are those of a file. It is safe for concurrent use.
type Tokens struct {
	file *reread.Value[[]entry]
}

// entry is a token by its digest.
type entry struct {
	digest [sha256.Size]byte
	caller Caller
}

// Open reads a file of tokens, a line each: `TOKEN` for all namespaces, or
// `TOKEN NS[,NS…]`. Empty lines and those that begin with # say nothing. It is
// read again when it changes; a change that cannot be read is logged and leaves
// the tokens from before.
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
		logger.Warn("the tokens cannot be read again; those from before are still taken", "error", err)
	}, path)
	if err != nil {
		return nil, err
	}
	return &Tokens{file: file}, nil
}

// parseTokens reads a file. Errors name the line and never show a token.
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
			return nil, fmt.Errorf("line %d: a token has at least %d characters; `openssl rand -hex 32` makes one", n, MinToken)
		case !tokenShape.MatchString(token):
			return nil, fmt.Errorf("line %d: a token consists of letters, digits and . _ ~ + / - only", n)
		case len(fields) > 2:
			return nil, fmt.Errorf("line %d: want TOKEN or TOKEN NAMESPACE,NAMESPACE without spaces", n)
		}
		e := entry{digest: sha256.Sum256([]byte(token))}
		if slices.ContainsFunc(entries, func(o entry) bool { return o.digest == e.digest }) {
			return nil, fmt.Errorf("line %d: the same token stands in a line above", n)
		}
		if len(fields) == 2 && fields[1] != "*" {
			e.caller.Namespaces = strings.Split(fields[1], ",")
			for _, ns := range e.caller.Namespaces {
				// The value is not shown, and what looks like a token is refused: in a line
				// whose columns were swapped it is one.
				if !runlog.Name.MatchString(ns) || hexToken.MatchString(ns) {
					return nil, fmt.Errorf("line %d: what stands behind the token is no namespace: want letters, digits, - and _, at most 64, and not 32 or more hexadecimal digits", n)
				}
			}
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("it holds no token: write one on a line; `openssl rand -hex 32` makes one")
	}
	return entries, nil
}

// Find says who has a token. It takes the same time whether there is one like it.
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

// With notes who calls.
func with(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// of is who calls; without a check everybody may do everything.
func of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
