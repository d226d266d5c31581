package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

const (
	promptKind   = "prompt"
	promptName   = "all" // the prompts of a namespace are one value
	promptFormat = 1
	maxPrompt    = 16 << 10 // bytes
	maxPrompts   = 14       // of a namespace, so that they fit into a value
	maxTier      = 64
)

func promptKey(namespace string) runlog.ValueKey {
	return runlog.ValueKey{Namespace: namespace, Kind: promptKind, Name: promptName}
}

// errDamaged means that stored bytes differ from the written ones.
var errDamaged = errors.New("what is stored is damaged")

// Prompts returns the prompts that were set in a namespace, by id, then tier.
func (p *Profiles) Prompts(ctx context.Context, namespace string) ([]*harnessv1.Prompt, error) {
	if p == nil {
		return nil, errNone
	}
	stored, _, err := p.storedPrompts(ctx, promptKey(namespace))
	return stored.GetPrompts(), err
}

func (p *Profiles) storedPrompts(ctx context.Context, key runlog.ValueKey) (*harnessv1.StoredPrompts, uint64, error) {
	data, revision, err := p.cfg.Values.Value(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	s := &harnessv1.StoredPrompts{}
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, revision, fmt.Errorf("%w: set one, which leaves the others out: %w", errDamaged, err)
	}
	if s.GetFormat() > promptFormat {
		return nil, 0, fmt.Errorf("the prompts have form %d: %w", s.GetFormat(), ErrNewer)
	}
	return s, revision, nil
}

// SetPrompt replaces a prompt; an empty text restores the built-in one, or that of all tiers. It returns the prompt that
// counts then. The error is a *fault.FieldError for an unknown id and a text that is too large.
func (p *Profiles) SetPrompt(ctx context.Context, namespace string, set *harnessv1.Prompt) (*harnessv1.Prompt, error) {
	_, known := quality.BuiltIn(set.GetId())
	switch {
	case p == nil:
		return nil, errNone
	case !known:
		return nil, fault.Invalid("id", "unknown prompt %q: must be one of %s", content.Clip(set.GetId(), 64), strings.Join(quality.PromptIDs(), ", "))
	case len(set.GetText()) > maxPrompt:
		return nil, fault.Invalid("text", "%d bytes: at most %d", len(set.GetText()), maxPrompt)
	case tierOf(set.GetTier()) != "" && (len(set.GetTier()) > maxTier || !runlog.Name.MatchString(set.GetTier())):
		return nil, fault.Invalid("tier", "%q: must match [A-Za-z0-9_-]{1,64}", content.Clip(set.GetTier(), 80))
	}
	set = &harnessv1.Prompt{Id: set.GetId(), Tier: tierOf(set.GetTier()), Text: set.GetText(), SetBy: set.GetSetBy()}
	key := promptKey(namespace)
	for end := p.cfg.Now().Add(p.cfg.Patience); ; {
		s, revision, err := p.storedPrompts(ctx, key)
		if errors.Is(err, errDamaged) {
			s, err = &harnessv1.StoredPrompts{}, nil
		}
		if err == nil {
			if err := replacePrompt(s, set, timestamppb.New(p.cfg.Now())); err != nil {
				return nil, err
			}
			var data []byte
			if data, err = (proto.MarshalOptions{Deterministic: true}).Marshal(s); err != nil {
				return nil, err
			}
			if _, err = p.cfg.Values.PutValue(ctx, key, data, revision); err == nil {
				p.mu.Lock()
				delete(p.prompts, namespace)
				p.mu.Unlock()
				return pick(s.GetPrompts(), set.GetId(), set.GetTier()), nil
			}
		}
		fenced := errors.Is(err, runlog.ErrFenced)
		if !fenced && !errors.Is(err, runlog.ErrUnavailable) || !fenced && !p.cfg.Now().Before(end) || !p.pause(ctx) {
			return nil, err
		}
	}
}

func replacePrompt(s *harnessv1.StoredPrompts, set *harnessv1.Prompt, at *timestamppb.Timestamp) error {
	s.Format = promptFormat
	s.Prompts = slices.DeleteFunc(s.GetPrompts(), func(p *harnessv1.Prompt) bool {
		return p.GetId() == set.GetId() && tierOf(p.GetTier()) == set.GetTier()
	})
	if set.GetText() == "" {
		return nil
	}
	if len(s.GetPrompts()) >= maxPrompts {
		return fault.Invalid("id", "the namespace has %d prompts already: unset one first", maxPrompts)
	}
	s.Prompts = append(s.GetPrompts(), &harnessv1.Prompt{
		Id: set.GetId(), Tier: set.GetTier(), Text: set.GetText(), Digest: quality.PromptDigest(set.GetText()), SetTime: at, SetBy: set.GetSetBy(),
	})
	slices.SortFunc(s.GetPrompts(), func(a, b *harnessv1.Prompt) int {
		return cmp.Or(cmp.Compare(a.GetId(), b.GetId()), cmp.Compare(a.GetTier(), b.GetTier()))
	})
	return nil
}

// defaultTier is another name of the tier of callers that have none.
const defaultTier = "default"

// tierOf returns a tier as it is stored.
func tierOf(tier string) string {
	if tier == defaultTier {
		return ""
	}
	return tier
}

// pick returns the prompt that counts for a tier: that of the tier, else that of all, else the
// built-in one.
func pick(set []*harnessv1.Prompt, id, tier string) *harnessv1.Prompt {
	var found *harnessv1.Prompt
	tier = tierOf(tier)
	for _, p := range set {
		if p.GetId() == id && (tierOf(p.GetTier()) == tier || tierOf(p.GetTier()) == "" && found == nil) {
			found = p
		}
	}
	if found != nil {
		return found
	}
	return BuiltIn(id)
}

// BuiltIn returns the built-in prompt with an id; an unknown one has an empty text.
func BuiltIn(id string) *harnessv1.Prompt {
	text, _ := quality.BuiltIn(id)
	return &harnessv1.Prompt{Id: id, Text: text, Digest: quality.PromptDigest(text)}
}

// promptsOf returns the prompts that replace built-in ones for a tier, at most maxPromptAge old.
func (p *Profiles) promptsOf(ctx context.Context, namespace, tier string) ([]*harnessv1.Prompt, error) {
	p.mu.Lock()
	k, ok := p.prompts[namespace]
	p.mu.Unlock()
	if !ok || p.cfg.Now().Sub(k.at) >= maxPromptAge {
		set, err := p.Prompts(ctx, namespace)
		if err != nil {
			return nil, err
		}
		k = readPrompts{set, p.cfg.Now()}
		p.mu.Lock()
		if len(p.prompts) >= maxKnown {
			clear(p.prompts)
		}
		p.prompts[namespace] = k
		p.mu.Unlock()
	}
	var replaced []*harnessv1.Prompt
	for _, id := range quality.PromptIDs() {
		if found := pick(k.set, id, tier); found.GetSetTime() != nil {
			replaced = append(replaced, proto.CloneOf(found))
		}
	}
	return replaced, nil
}
