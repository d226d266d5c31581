// Package signin signs persons in at servers of the Model Context Protocol with OAuth 2.1, and
// has the tokens for the requests to these servers.
//
// A sign-in has two halves. Start discovers the authorization server of a server, registers a
// client there and returns the address that a person opens. Finish exchanges the code that the
// browser was given for tokens and stores them. Both halves are of the same process, within ten
// minutes. Discovery is that of the SDK; PKCE, resource (RFC 8707), state and
// issuer (RFC 9207) are always sent or checked.
//
// The tokens of a namespace and server are a file that its user alone can read. Processes may
// share the folder: whatever writes a file has locked it, and reads it again before, so that
// one expiry means one refresh. A refreshed token is stored before it is used, and a refresh
// that has begun does not end with the call that needs it: the authorization server may have
// replaced the refresh token already. A refused refresh removes the tokens; one that fails for
// another reason leaves them.
//
// Tokens, codes and secrets are in no error, and are sent to the authorization server and the
// server alone, never after a redirect.
package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// Bounds of sign-ins.
const (
	// Valid is how long a sign-in that has begun can be completed.
	Valid = 10 * time.Minute
	// maxPending bounds the sign-ins that have begun; the oldest is dropped.
	maxPending = 100
	// refreshTimeout bounds a refresh, including the wait for another process.
	refreshTimeout = 40 * time.Second
	// earliest is how long before its expiry a token is refreshed, at most a tenth of its life.
	earliest = 30 * time.Second
)

// ErrNeeded is the error of a request to a server at which a person has to sign in.
var ErrNeeded = errors.New("a person has to sign in")

// Account is a server at which runs of a namespace are signed in.
type Account struct {
	// Namespace is that of the runs.
	Namespace string
	// Address is the URL of the server.
	Address string
	// ClientID and ClientSecret are those of a client that is registered already; empty: each
	// sign-in registers one.
	ClientID, ClientSecret string
	// Scopes are the only ones that are requested; nil: those that the server names.
	Scopes []string
	// Headers are sent with each request to the server.
	Headers http.Header
	// Local: a local person has named the server, so that its address may be private.
	Local bool
}

// key names the tokens of an account.
func (a Account) key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{a.Namespace, a.Address, a.ClientID}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Config configures SignIns. Dir and Dialer are required.
type Config struct {
	// Dir is the folder of the tokens, which is made if it is missing.
	Dir string
	// Dialer returns what connects for the sign-in at a server.
	Dialer func(address string, local bool) *dial.Dialer
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger; nil discards.
	Logger *slog.Logger
}

// SignIns are the sign-ins of all namespaces. It is safe for concurrent use.
type SignIns struct {
	config Config
	store  store

	mu      sync.Mutex
	closed  bool
	pending map[string]*attempt // by state
	flights map[string]*flight  // by key
	running sync.WaitGroup
}

// New returns the sign-ins of a folder.
func New(config Config) *SignIns {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &SignIns{config: config, store: store{dir: config.Dir}, pending: map[string]*attempt{}, flights: map[string]*flight{}}
}

// Close waits for the refreshes that have begun. None begins afterwards.
func (s *SignIns) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// State is whether an account has tokens.
type State struct {
	// SignedIn: it has a token that has not expired and was not refused, or can be renewed.
	SignedIn bool
	// Renewed: the token is refreshed when it expires.
	Renewed bool
	// Valid is how long the present token is valid; 0: not known.
	Valid time.Duration
	// Issuer is the authorization server.
	Issuer string
	// Scopes are those of the token; nil: not known.
	Scopes []string
	// Lacked are rights that a call has lacked.
	Lacked []string
}

// State returns whether an account has tokens. It sends no request.
func (s *SignIns) State(a Account) (State, error) {
	g, err := s.store.read(a.key())
	if err != nil || g == nil {
		return State{}, err
	}
	return s.stateOf(g), nil
}

func (s *SignIns) stateOf(g *grant) State {
	state := State{SignedIn: !g.Refused, Renewed: g.RefreshToken != "", Issuer: g.Issuer, Scopes: g.Scopes, Lacked: g.Wanted}
	if !g.Expiry.IsZero() {
		state.Valid = max(0, g.Expiry.Sub(s.config.Now()))
		state.SignedIn = !g.Refused && (state.Valid > 0 || state.Renewed)
	}
	return state
}

// Version returns a text that changes with the tokens of an account and does not reveal them;
// empty if it has none.
func (s *SignIns) Version(a Account) string {
	g, err := s.store.read(a.key())
	if err != nil || g == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(g.AccessToken + "\x00" + g.RefreshToken))
	return hex.EncodeToString(sum[:8])
}

// Out removes the tokens of an account, and reports whether there were any. It revokes them if
// the authorization server has a way to; a failure of that is logged only.
func (s *SignIns) Out(ctx context.Context, a Account) (removed bool, err error) {
	var g *grant
	err = s.store.locked(ctx, a.key(), func() (err error) {
		if g, err = s.store.read(a.key()); err != nil || g == nil {
			return err
		}
		return s.store.remove(a.key())
	})
	if err != nil || g == nil {
		return false, err
	}
	if g.RevocationEndpoint != "" {
		if err := s.revoke(ctx, a, g); err != nil {
			s.config.Logger.WarnContext(ctx, "tokens of a server are removed here and could not be revoked", "error", err)
		}
	}
	return true, nil
}
