// Package access decides which callers may use a gateway. Bearer tokens come from a
// file, each valid for all namespaces or for some, and are checked before gRPC and HTTP
// requests alike.
//
// A token grants its namespaces and, within them, the rights of its line: folders, models,
// and what runs may do. It never appears in a log, an error or stored data; memory holds
// only digests.
package access

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
)

// minToken is the minimum length of a token, in bytes.
const minToken = 16

// tokenShape is the form of a bearer token by RFC 6750.
var tokenShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`) })

// Tokens are the tokens of a file, or one key. It is safe for concurrent use.
type Tokens struct {
	file    *reread.Value[[]entry] // nil: only key
	key     func() string
	holders holders
	where   string // which token a caller has to send, for errors
}

// Key returns tokens of which there is one: a key that is valid for everything. where
// completes "send" in the errors of callers without it, and must not contain the key.
func Key(key, where string) *Tokens { return LiveKey(func() string { return key }, where) }

// LiveKey is Key for a key that may be renewed.
func LiveKey(key func() string, where string) *Tokens { return &Tokens{key: key, where: where} }

// entries returns the tokens that are valid now.
func (t *Tokens) entries() []entry {
	if t.file == nil {
		return []entry{{digest: sha256.Sum256([]byte(t.key())), caller: Caller{Name: Local, key: true}}}
	}
	return t.file.Get()
}

// entry is a token, stored as its digest.
type entry struct {
	digest [sha256.Size]byte
	caller Caller
	line   int
}

// Unbounded returns the numbers of the lines without roots, whose holders can start runs
// in every folder of a tool host.
func (t *Tokens) Unbounded() []int {
	var lines []int
	for _, e := range t.entries() {
		if e.caller.Roots == nil {
			lines = append(lines, e.line)
		}
	}
	return lines
}

// Open reads a file of tokens, one a line: `TOKEN [NS,…|*] [name=N] [roots=DIR,…]
// [providers=P,…] [may=RIGHT,…] [tier=T] [entitlements=E,…] [runs=N] [bytes=N] [starts=N] [watchers=N]`. An omitted item is not
// bounded, but the quotas have defaults; that of name is made from the token's digest. Empty lines and lines that
// begin with # are ignored. The file is read again when it changes; a change that cannot
// be read is logged, and the previous tokens stay valid.
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
	return &Tokens{file: file, where: "a token of the gateway's --tokens file"}, nil
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
		e, err := parseLine(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if slices.ContainsFunc(entries, func(o entry) bool { return o.digest == e.digest }) {
			return nil, fmt.Errorf("line %d: duplicate token", n)
		}
		e.line = n
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
	e, ok := t.find(token)
	return e.caller, ok
}

func (t *Tokens) find(token string) (found entry, ok bool) {
	digest := sha256.Sum256([]byte(token))
	for _, e := range t.entries() {
		if subtle.ConstantTimeCompare(e.digest[:], digest[:]) == 1 {
			found, ok = e, true
		}
	}
	return found, ok
}
