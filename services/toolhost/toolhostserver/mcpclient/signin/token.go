package signin

import (
	"context"
	"errors"
	"slices"
	"time"
)

// maxScopes bounds the scopes that are stored of a response, in bytes.
const maxScopes = 8 << 10

// flight is a refresh in progress that all calls of this process wait for.
type flight struct {
	done  chan struct{}
	token string // after done
	err   error
}

// Token returns the access token of an account. It is refreshed if it expires, or is stale: the
// token that the server has refused. An account without tokens has the token "" unless stale is
// set. The error is ErrNeeded if a person has to sign in.
func (s *SignIns) Token(ctx context.Context, a Account, stale string) (string, error) {
	key := a.key()
	for {
		g, err := s.store.read(key)
		if err != nil {
			return "", err
		}
		now := s.config.Now()
		switch {
		case g == nil && stale == "":
			return "", nil
		case g == nil:
			return "", ErrNeeded
		case g.AccessToken != stale && (!g.expiring(now) || g.RefreshToken == "" && !g.expired(now)):
			return g.AccessToken, nil
		case g.RefreshToken == "":
			if g.AccessToken == stale && !g.Refused {
				s.refused(ctx, key, stale)
			}
			return "", ErrNeeded
		}
		f, err := s.join(ctx, a, stale)
		if err != nil {
			return "", err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if f.err != nil || f.token != stale {
			return f.token, f.err
		}
		// The refresh was begun for a token before stale.
	}
}

// join returns the refresh of an account that is in progress, or begins one. It does not end with
// ctx: the authorization server may have replaced the refresh token already.
func (s *SignIns) join(ctx context.Context, a Account, stale string) (*flight, error) {
	key := a.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the tool host is closing")
	}
	if f := s.flights[key]; f != nil {
		return f, nil
	}
	f := &flight{done: make(chan struct{})}
	s.flights[key] = f
	s.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), refreshTimeout, errors.New("the refresh of its token took too long"))
		defer cancel()
		f.err = s.store.locked(ctx, key, func() (err error) {
			f.token, err = s.refreshLocked(ctx, a, stale)
			return err
		})
		s.mu.Lock()
		delete(s.flights, key)
		s.mu.Unlock()
		close(f.done)
	})
	return f, nil
}

// refreshLocked returns a token that is not stale. The caller has locked the account, so a token
// that another process has refreshed is there.
func (s *SignIns) refreshLocked(ctx context.Context, a Account, stale string) (string, error) {
	key := a.key()
	g, err := s.store.read(key)
	if err != nil {
		return "", err
	}
	now := s.config.Now()
	switch {
	case g == nil:
		return "", ErrNeeded
	case g.AccessToken != stale && (!g.expiring(now) || g.RefreshToken == "" && !g.expired(now)):
		return g.AccessToken, nil
	case g.RefreshToken == "":
		return "", ErrNeeded
	}
	if err := s.store.writable(key); err != nil { // a token that could not be stored would be lost
		return "", err
	}
	response, err := s.refresh(ctx, a, g)
	var refused *refusal
	switch {
	case errors.As(err, &refused) && refused.final():
		s.config.Logger.WarnContext(ctx, "the authorization server of a server does not renew its token; a person has to sign in", "issuer", g.Issuer, "error", err)
		return "", errors.Join(ErrNeeded, s.store.remove(key))
	case err != nil && g.AccessToken != stale && !g.expired(now):
		return g.AccessToken, nil
	case err != nil:
		return "", err
	}
	g.take(response, now)
	if err := s.store.write(key, g); err != nil {
		return "", err
	}
	if g.AccessToken == stale { // another refresh would return it again
		return "", ErrNeeded
	}
	return g.AccessToken, nil
}

// refused stores that the server has refused a token that nothing renews, so that the state of the
// account shows it.
func (s *SignIns) refused(ctx context.Context, key, token string) {
	err := s.store.locked(ctx, key, func() error {
		g, err := s.store.read(key)
		if err != nil || g == nil || g.AccessToken != token || g.RefreshToken != "" || g.Refused {
			return err
		}
		g.Refused = true
		return s.store.write(key, g)
	})
	if err != nil {
		s.config.Logger.WarnContext(ctx, "a token that its server has refused is still listed as valid", "error", err)
	}
}

// take puts the tokens of a response into a grant.
func (g *grant) take(r *tokens, now time.Time) {
	g.AccessToken, g.Issued, g.Expiry, g.Refused = r.AccessToken, now, time.Time{}, false
	if r.RefreshToken != "" { // else the former one stays valid
		g.RefreshToken = r.RefreshToken
	}
	if r.life > 0 {
		g.Expiry = now.Add(r.life)
	}
	if r.scopes != nil {
		g.Scopes = r.scopes
	}
}

// Want stores scopes that a call has lacked: the next sign-in requests them too.
func (s *SignIns) Want(ctx context.Context, a Account, scopes []string) error {
	return s.store.locked(ctx, a.key(), func() error {
		g, err := s.store.read(a.key())
		if err != nil || g == nil {
			return err
		}
		wanted := bounded(union(g.Wanted, scopes))
		if slices.Equal(wanted, g.Wanted) {
			return nil
		}
		g.Wanted = wanted
		return s.store.write(a.key(), g)
	})
}

// union returns the elements of a, then those of b that are not among them.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, text := range b {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// bounded returns the first of the scopes that a server names, which are stored.
func bounded(scopes []string) []string {
	size := 0
	for i, scope := range scopes {
		if size += len(scope) + 1; size > maxScopes {
			return scopes[:i]
		}
	}
	return scopes
}
