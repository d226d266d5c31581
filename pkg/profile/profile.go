// Package profile keeps what outlives runs: the profile of each workspace, with its totals and
// the verdicts that users did not share. It is a value of the run log, changed by compare and
// set, because workers on any node change it.
//
// Invariants:
//   - A segment is counted once, under the hash of its run, of the sequence of the run's first
//     record and of its number. A worker that makes a decision again finds it counted, with the
//     number that it had.
//   - A profile that a newer program wrote is not changed. Its runs have the defaults.
//   - Nothing of a deleted run is stored after its deletion.
//   - A profile that cannot be used fails no run: its observation then has a problem.
package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// kind is the kind of the values of profiles.
const kind = "profile"

// ErrNewer means that a newer program wrote a profile.
var ErrNewer = errors.New("a newer program wrote it; update this one")

// Config configures Profiles.
type Config struct {
	// Values stores profiles. Required.
	Values runlog.Values
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Patience is how long a change waits for a bus that does not answer. Default 10 s.
	Patience time.Duration
	// Random returns numbers in [0, 1) for the pauses between two tries of a change. Default
	// rand.Float64.
	Random func() float64
	// Logger; nil discards.
	Logger *slog.Logger
}

// Profiles reads and changes profiles. The methods of nil report that there are none.
type Profiles struct {
	cfg Config

	mu    sync.Mutex
	known map[runlog.ValueKey]readProfile
	// prompts are those that were set, by namespace.
	prompts map[string]readPrompts
}

// readPrompts are prompts with the time at which they were read.
type readPrompts struct {
	set []*harnessv1.Prompt
	at  time.Time
}

// readProfile is a profile with the time at which it was read.
type readProfile struct {
	state *harnessv1.ProfileState
	at    time.Time
}

// Bounds of the cache. A full one is emptied.
const (
	maxAge = 5 * time.Minute
	// Prompts are changed by persons, who expect to see the change.
	maxPromptAge = 2 * time.Second
	maxKnown     = 4096
)

func New(cfg Config) *Profiles {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 10 * time.Second
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Profiles{cfg: cfg, known: map[runlog.ValueKey]readProfile{}, prompts: map[string]readPrompts{}}
}

func keyOf(namespace, profile string) runlog.ValueKey {
	return runlog.ValueKey{Namespace: namespace, Kind: kind, Name: profile}
}

// Observe makes a change and returns the profile after it. A change that is empty reads the
// profile, which may then be up to 5 minutes old. An error is the end of ctx.
func (p *Profiles) Observe(ctx context.Context, namespace string, c *harnessv1.ProfileChange) (*harnessv1.Observation, error) {
	s, err := p.observe(ctx, namespace, c)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s = &harnessv1.ProfileState{Problem: content.Line(err.Error(), content.MaxPreview)}
		if p != nil {
			p.cfg.Logger.WarnContext(ctx, "profile not used", "namespace", namespace, "profile", c.GetProfile(), "error", err)
		}
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Profile{Profile: s}}, nil
}

var errNone = errors.New("profiles are not set up here")

func (p *Profiles) observe(ctx context.Context, namespace string, c *harnessv1.ProfileChange) (*harnessv1.ProfileState, error) {
	if p == nil {
		return nil, errNone
	}
	key := keyOf(namespace, c.GetProfile())
	if c.GetChange() == nil {
		prompts, err := p.promptsOf(ctx, namespace, c.GetTier())
		if err != nil {
			return nil, err
		}
		s := &harnessv1.ProfileState{}
		if c.GetProfile() != "" {
			if s, err = p.read(ctx, key); err != nil {
				return nil, err
			}
		}
		s.Prompts = prompts
		return s, nil
	}
	stored, err := p.change(ctx, key, func(s *harnessv1.StoredProfile) bool { return apply(s, c) })
	if err != nil {
		return nil, err
	}
	return seen(stored, c), nil
}

// read returns a profile that is at most maxAge old.
func (p *Profiles) read(ctx context.Context, key runlog.ValueKey) (*harnessv1.ProfileState, error) {
	p.mu.Lock()
	k, ok := p.known[key]
	p.mu.Unlock()
	if ok && p.cfg.Now().Sub(k.at) < maxAge {
		return proto.CloneOf(k.state), nil
	}
	return p.Read(ctx, key.Namespace, key.Name)
}

// Read returns a profile as it is stored now.
func (p *Profiles) Read(ctx context.Context, namespace, profile string) (*harnessv1.ProfileState, error) {
	if p == nil {
		return nil, errNone
	}
	key, at := keyOf(namespace, profile), p.cfg.Now()
	stored, _, err := p.stored(ctx, key)
	if err != nil {
		return nil, err
	}
	s := seen(stored, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[key] = readProfile{proto.CloneOf(s), at}
	return s, nil
}

// Forget removes the words of a run from its profile; nothing of it is stored there later. An
// empty profile is none.
func (p *Profiles) Forget(ctx context.Context, run runlog.Run, profile string, first uint64) error {
	if p == nil || profile == "" {
		return nil
	}
	_, err := p.change(ctx, keyOf(run.Namespace, profile), func(s *harnessv1.StoredProfile) bool { return forget(s, run.ID, first) })
	if errors.Is(err, ErrNewer) || errors.Is(err, runlog.ErrNotFound) {
		return nil // the newer program does it, or there is no place for words
	}
	return err
}

// Reset makes a profile new. Runs that were deleted stay so.
func (p *Profiles) Reset(ctx context.Context, namespace, profile string) error {
	if p == nil {
		return errNone
	}
	_, err := p.replace(ctx, keyOf(namespace, profile), func(s *harnessv1.StoredProfile) bool {
		forgotten := s.GetForgotten()
		proto.Reset(s)
		s.Format, s.Forgotten = format, forgotten
		return true
	})
	return err
}

// stored returns a profile with its revision.
func (p *Profiles) stored(ctx context.Context, key runlog.ValueKey) (*harnessv1.StoredProfile, uint64, error) {
	data, revision, err := p.cfg.Values.Value(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	s := &harnessv1.StoredProfile{}
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, revision, fmt.Errorf("profile %s: %w: reset it: %w", key.Name, errDamaged, err)
	}
	if s.GetFormat() > format {
		return nil, 0, fmt.Errorf("profile %s has form %d: %w", key.Name, s.GetFormat(), ErrNewer)
	}
	return s, revision, nil
}

// change makes a change until it is stored or has nothing to store. Whether an unanswered write
// was stored shows the next read.
func (p *Profiles) change(ctx context.Context, key runlog.ValueKey, change func(*harnessv1.StoredProfile) bool) (*harnessv1.StoredProfile, error) {
	return p.store(ctx, key, false, change)
}

// replace is change, and takes a damaged profile for a new one.
func (p *Profiles) replace(ctx context.Context, key runlog.ValueKey, change func(*harnessv1.StoredProfile) bool) (*harnessv1.StoredProfile, error) {
	return p.store(ctx, key, true, change)
}

func (p *Profiles) store(ctx context.Context, key runlog.ValueKey, damaged bool, change func(*harnessv1.StoredProfile) bool) (*harnessv1.StoredProfile, error) {
	for end := p.cfg.Now().Add(p.cfg.Patience); ; {
		s, revision, err := p.stored(ctx, key)
		if damaged && errors.Is(err, errDamaged) {
			s, err = &harnessv1.StoredProfile{}, nil
		}
		if err == nil {
			if !change(s) {
				return s, nil
			}
			var data []byte
			if data, err = (proto.MarshalOptions{Deterministic: true}).Marshal(s); err != nil {
				return nil, err
			}
			if _, err = p.cfg.Values.PutValue(ctx, key, data, revision); err == nil {
				p.mu.Lock()
				delete(p.known, key)
				p.mu.Unlock()
				return s, nil
			}
		}
		fenced := errors.Is(err, runlog.ErrFenced)
		if !fenced && !errors.Is(err, runlog.ErrUnavailable) || !fenced && !p.cfg.Now().Before(end) || !p.pause(ctx) {
			return nil, err
		}
	}
}

// pause waits up to 20 ms and reports whether ctx still lasts.
func (p *Profiles) pause(ctx context.Context) bool {
	timer := time.NewTimer(time.Duration(1+20*p.cfg.Random()) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
