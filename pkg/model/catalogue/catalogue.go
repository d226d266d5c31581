// Package catalogue is the table of known providers and models: where a provider is and
// how requests to it look, and the windows, the prices and the abilities of models. It
// is embedded in the binary, and a file can extend it. No provider is queried.
//
// A model that is not in the table has the fallback window and no price; Lookup
// never fails. Prices are public list prices, with no discount except that for
// cached input, and become outdated; extend the table where they matter.
package catalogue

import (
	_ "embed"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// FallbackWindow is the window of a model that is not in the catalogue, in tokens.
const FallbackWindow = 128_000

// Prices are in millionths of a US dollar for a million tokens.
type Prices struct {
	// Input that neither came from the provider's cache nor went into it.
	Input uint64
	// Cached is input that came from the cache.
	Cached uint64
	// Written is input that was written to the cache, which keeps it five minutes.
	Written uint64
	// Output of every kind.
	Output uint64
}

// Entry describes one model.
type Entry struct {
	// Window is the maximum input of the model, in tokens; at least 1.
	Window uint32
	// MaxOutput is the maximum output of one response, in tokens; 0 if unknown.
	MaxOutput uint32
	// Prices of a request; all 0 if unknown.
	Prices Prices
	// LongAbove is the input length, in tokens, above which a request is charged at
	// the prices Long; 0 if the length does not matter.
	LongAbove uint32
	// Long are the prices of a request whose input is longer than LongAbove.
	Long Prices
	// Wire is the model's, if it differs from the first one of its provider.
	Wire Wire
	// Efforts are those that the model takes. Nil: not known, assume all. Empty: the model
	// does not reason, and requests must name none.
	Efforts []harnessv1.Effort
	// Thinking is how reasoning is requested on WireMessages; empty if unknown.
	Thinking Thinking
	// AlwaysOn reports whether reasoning cannot be disabled.
	AlwaysOn bool
	// Reads are the other models of the provider whose reasoning the model reads.
	Reads []string
	// Images and PDF report whether the model takes them; nil: as its provider says.
	Images, PDF *bool
	// ImageTokens is the formula for the tokens of an image.
	ImageTokens ImageTokens
	// TokenFactor is how many tokens the model needs for one that pkg/tokens counts, as far as
	// it is known before the provider has reported any: from tokens.MinFactor to tokens.MaxFactor.
	TokenFactor float64
	// Known reports whether the model is in the catalogue.
	Known bool
	// Priced reports whether the catalogue has its prices.
	Priced bool
}

// Thinking is how a request on WireMessages asks a model to reason.
type Thinking string

// The values of Thinking.
const (
	// ThinkingAdaptive: the model decides; an effort guides it.
	ThinkingAdaptive Thinking = "adaptive"
	// ThinkingBudget: the request names a number of tokens.
	ThinkingBudget Thinking = "budget"
	// ThinkingNone: the model does not think.
	ThinkingNone Thinking = "none"
)

// Cost returns the price of one request in millionths of a US dollar, rounded to
// the nearest; 0 if the prices are unknown. The result saturates.
func (e Entry) Cost(u *harnessv1.Usage) uint64 {
	prices := e.Prices
	if e.LongAbove > 0 && u.GetInputTokens() > uint64(e.LongAbove) {
		prices = e.Long
	}
	cached := min(u.GetCachedInputTokens(), u.GetInputTokens())
	written := min(u.GetCacheWriteTokens(), u.GetInputTokens()-cached)
	var sum uint64
	for _, part := range []struct{ tokens, price uint64 }{
		{u.GetInputTokens() - cached - written, prices.Input},
		{cached, prices.Cached},
		{written, prices.Written},
		{u.GetOutputTokens(), prices.Output},
	} {
		hi, lo := bits.Mul64(part.tokens, part.price)
		if hi != 0 || sum > math.MaxUint64-lo {
			return math.MaxUint64 / million
		}
		sum += lo
	}
	return sum/million + (sum%million+million/2)/million
}

const million = 1_000_000

// Catalogue is an immutable table of providers and models.
type Catalogue struct {
	entries   map[string]Entry
	providers map[string]*Provider
	order     []string // names of providers
}

//go:embed models.yaml
var embeddedModels []byte

//go:embed providers.yaml
var embeddedProviders []byte

// builtin parses the embedded catalogue when it is first used.
var builtin = sync.OnceValue(func() *Catalogue {
	c, err := (&Catalogue{}).Extend("providers.yaml", embeddedProviders)
	if err == nil {
		c, err = c.Extend("models.yaml", embeddedModels)
	}
	if err != nil {
		panic("catalogue: " + err.Error())
	}
	return c
})

// Default returns the embedded catalogue.
func Default() *Catalogue { return builtin() }

// Lookup finds a model in the embedded catalogue; see Catalogue.Lookup.
func Lookup(ref string) Entry { return builtin().Lookup(ref) }

// Extend returns a catalogue that also contains the models and providers of a file. One
// of the file replaces one of the same name as a whole. name is the file's name in the
// error, which is one line: "own.yaml:3:5: …".
func (c *Catalogue) Extend(name string, data []byte) (*Catalogue, error) {
	p := &parser{file: name}
	file, err := p.parse(data)
	if err != nil {
		return nil, err
	}
	out := &Catalogue{entries: map[string]Entry{}, providers: map[string]*Provider{}, order: slices.Clone(c.order)}
	maps.Copy(out.entries, c.entries)
	maps.Copy(out.providers, c.providers)
	for _, m := range file.models {
		out.entries[m.ref] = m.entry
	}
	for _, m := range file.providers {
		if out.providers[m.Name] == nil {
			out.order = append(out.order, m.Name)
		}
		out.providers[m.Name] = m.Provider
	}
	if err := p.check(out, file); err != nil {
		return nil, err
	}
	return out, nil
}

// Lookup finds a model by its reference, such as openai:gpt-5. A name with the
// date of a snapshot (gpt-4o-2024-08-06, claude-haiku-4-5-20251001) is looked up
// without the date, unless it has a separate entry. An unknown model of a provider that
// has the models of another one is described by that one's entry, without prices. Any
// other unknown model has the fallback window, no prices, and Known false. An entry without
// a token factor gets the default.
func (c *Catalogue) Lookup(ref string) Entry {
	e := c.lookup(ref)
	if e.TokenFactor == 0 {
		e.TokenFactor = defaultTokenFactor(ref)
	}
	return e
}

func (c *Catalogue) lookup(ref string) Entry {
	p, name := c.ProviderOf(ref)
	if p != nil {
		ref = p.Name + ":" + name
	}
	if e, ok := c.entry(ref); ok {
		return e
	}
	if p != nil && p.ModelsOf != "" {
		if e, ok := c.entry(p.ModelsOf + ":" + strings.TrimPrefix(name, p.ModelPrefix)); ok {
			e.Prices, e.Long, e.LongAbove, e.Priced = Prices{}, Prices{}, 0, false
			return e
		}
	}
	return Entry{Window: FallbackWindow}
}

// entry finds a model by its reference, with or without a date.
func (c *Catalogue) entry(ref string) (Entry, bool) {
	if e, ok := c.entries[ref]; ok {
		return e, true
	}
	for _, date := range []string{"-0000-00-00", "-00000000"} {
		if e, ok := c.entries[without(date, ref)]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// without removes a date from the end; form has a 0 for each digit.
func without(form, ref string) string {
	if len(ref) <= len(form) {
		return ref
	}
	cut := len(ref) - len(form)
	for i, want := range form {
		got := rune(ref[cut+i])
		if want == '-' && got != '-' || want == '0' && (got < '0' || got > '9') {
			return ref
		}
	}
	return ref[:cut]
}

// named reports whether a reference has a provider and a name.
func named(ref string) bool {
	provider, name, ok := strings.Cut(ref, ":")
	return ok && provider != "" && name != ""
}
