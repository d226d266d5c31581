package jetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// credentialOption returns the option for a file with the credentials of a NATS user: a JWT
// and its key, as `nsc` writes it, or one line USER:PASSWORD. The file is read again for
// each connection.
func credentialOption(path string) (nats.Option, error) {
	if path == "" {
		return func(*nats.Options) error { return nil }, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--nats-creds: %w", err)
	}
	if isDecorated(raw) {
		return nats.UserCredentials(path), nil
	}
	user, password, err := parsePassword(raw)
	if err != nil {
		return nil, fmt.Errorf("--nats-creds: %s: %w", path, err)
	}
	return nats.UserInfoHandler(func() (string, string) {
		if raw, err := os.ReadFile(path); err == nil {
			if u, p, err := parsePassword(raw); err == nil {
				return u, p
			}
		}
		return user, password
	}), nil
}

// isDecorated reports whether a file has the form of a JWT and its key.
func isDecorated(raw []byte) bool { return strings.Contains(string(raw), "-----BEGIN NATS") }

// parsePassword parses USER:PASSWORD. Errors contain neither.
func parsePassword(raw []byte) (user, password string, err error) {
	line := strings.TrimSpace(string(raw))
	user, password, found := strings.Cut(line, ":")
	if !found || user == "" || password == "" || strings.ContainsAny(line, " \t\r\n") {
		return "", "", errors.New("expected a JWT and its key (-----BEGIN NATS USER JWT-----), or one line USER:PASSWORD without spaces")
	}
	return user, password, nil
}

// anonymousWait bounds the try to connect without credentials.
const anonymousWait = 2 * time.Second

// AcceptsAnyClient reports whether the servers of the bus accept a client without credentials
// and certificate. Then every process that reaches a server can write to every run. cfg is the
// configuration of this connection. A server that requires credentials has announced that
// before it received any: it is not tried, because it would log an error.
func (l *Log) AcceptsAnyClient(ctx context.Context, cfg Config) bool {
	return !l.nc.AuthRequired() && acceptsAnyClient(ctx, cfg)
}

// acceptsAnyClient connects without credentials. A server that cannot be reached counts as one
// that does not accept such clients.
func acceptsAnyClient(ctx context.Context, cfg Config) bool {
	options := []nats.Option{nats.Name(cfg.Name + ", without credentials"), nats.NoReconnect(), nats.Timeout(anonymousWait)}
	trust, err := TLSFiles{CA: cfg.TLS.CA}.options()
	if err != nil || ctx.Err() != nil {
		return false
	}
	nc, err := nats.Connect(withoutUser(cfg.URL), append(options, trust...)...)
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

// withoutUser returns a list of URLs without users, passwords and tokens.
func withoutUser(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		scheme, rest, found := strings.Cut(text, "://")
		if !found {
			scheme, rest = "nats", text
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		list[i] = strings.TrimSpace(scheme) + "://" + strings.TrimSpace(rest)
	}
	return strings.Join(list, ",")
}
