package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two attempts to lock the tokens of an account.
const lockPause = 10 * time.Millisecond

// grant is what an authorization server has granted: the contents of a file.
type grant struct {
	// Server is the address of the server, for people who look at the file.
	Server string `json:"server"`
	// Resource is the identifier of the server at the authorization server.
	Resource           string `json:"resource"`
	Issuer             string `json:"issuer"`
	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
	client
	AccessToken  string   `json:"access_token"`
	RefreshToken string   `json:"refresh_token,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	// Wanted are scopes that a call has lacked: the next sign-in requests them too.
	Wanted []string `json:"wanted,omitempty"`
	// Issued and Expiry bound the life of the access token. Expiry is zero if it is not known.
	Issued time.Time `json:"issued"`
	Expiry time.Time `json:"expiry,omitzero"`
	// Refused: the server has refused the access token, and nothing renews it. It is still tried.
	Refused bool `json:"refused,omitempty"`
}

// expired reports whether the access token is not valid any more.
func (g *grant) expired(now time.Time) bool { return !g.Expiry.IsZero() && !now.Before(g.Expiry) }

// expiring reports whether the access token is to be refreshed.
func (g *grant) expiring(now time.Time) bool {
	return !g.Expiry.IsZero() && !now.Before(g.Expiry.Add(-min(earliest, g.Expiry.Sub(g.Issued)/10)))
}

// store is a folder with a file for each account.
type store struct{ dir string }

func (s store) path(key string) string { return filepath.Join(s.dir, key+".json") }

// read returns the grant of an account; nil if it has none.
func (s store) read(key string) (*grant, error) {
	data, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	g := &grant{}
	if err := json.Unmarshal(data, g); err != nil { // the cause could quote a token
		return nil, fmt.Errorf("tokens: the file %s is damaged: remove it, and sign in again", s.path(key))
	}
	return g, nil
}

// write replaces the grant of an account. The caller has locked it.
func (s store) write(key string, g *grant) error {
	data, err := json.MarshalIndent(g, "", "  ") //nolint:gosec // the file is for tokens, and its user alone can read it
	if err != nil {
		return err
	}
	fresh := s.path(key) + ".new"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if err := os.Rename(fresh, s.path(key)); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}

// writable returns an error if the grant of an account could not be written now.
func (s store) writable(key string) error {
	f, err := os.OpenFile(s.path(key)+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return f.Close()
}

// remove removes the grant of an account. The caller has locked it.
func (s store) remove(key string) error {
	if err := os.Remove(s.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}

// locked calls f while no other process and no other goroutine changes the grant of an account.
func (s store) locked(ctx context.Context, key string, f func() error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, key+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	defer func() { _ = file.Close() }() // which unlocks it
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f()
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("tokens: lock %s: %w", file.Name(), err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("tokens: another process has locked %s: %w", file.Name(), context.Cause(ctx))
		}
	}
}
