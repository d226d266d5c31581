// Package catalogue holds what is known of models beforehand: how much they
// read and what they cost. It is a table, embedded in the binary; a file can
// extend it. Nothing here is asked of a provider.
//
// A model that is not in it has the fallback window and no price; Lookup never
// fails. Prices are the provider's public list prices without discounts other
// than that for cached input, and go out of date; extend the table where they
// matter.
package catalogue

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"sigs.k8s.io/yaml"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// FallbackWindow is the window of a model that is not in the catalogue, in tokens.
const FallbackWindow = 128_000

// Entry is what is known of one model.
type Entry struct {
	// Window is the most input that the model takes, in tokens; at least 1.
	Window uint32
	// InputMicroUSDPerMTok is the price of a million input tokens in millionths
	// of a US dollar; 0 where it is not known or there is none.
	InputMicroUSDPerMTok uint64
	// CachedMicroUSDPerMTok is the same for input that came from the cache.
	CachedMicroUSDPerMTok uint64
	// OutputMicroUSDPerMTok is the same for output.
	OutputMicroUSDPerMTok uint64
	// Known says that the model is in the catalogue.
	Known bool
}

// Cost is the price of a usage in millionths of a US dollar, rounded to the
// nearest; 0 where the prices are not known. It stops at the largest number.
func (e Entry) Cost(u *harnessv1.Usage) uint64 {
	cached := min(u.GetCachedInputTokens(), u.GetInputTokens())
	var sum uint64
	for _, part := range []struct{ tokens, price uint64 }{
		{u.GetInputTokens() - cached, e.InputMicroUSDPerMTok},
		{cached, e.CachedMicroUSDPerMTok},
		{u.GetOutputTokens(), e.OutputMicroUSDPerMTok},
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

// Catalogue is a table of models. It is not changed after it was made.
type Catalogue struct{ entries map[string]Entry }

//go:embed models.yaml
var embedded []byte

var builtin = func() *Catalogue {
	c, err := (&Catalogue{}).Extend("models.yaml", embedded)
	if err != nil {
		panic("catalogue: " + err.Error())
	}
	return c
}()

// Default is the embedded catalogue.
func Default() *Catalogue { return builtin }

// Lookup finds a model in the embedded catalogue; see Catalogue.Lookup.
func Lookup(ref string) Entry { return builtin.Lookup(ref) }

// file is the shape of a catalogue file. Prices are in US dollars for a
// million tokens, as providers write them.
type file struct {
	Models []struct {
		Ref    string   `json:"ref"`
		Window uint32   `json:"window"`
		Input  *float64 `json:"input"`
		Cached *float64 `json:"cached"`
		Output *float64 `json:"output"`
	} `json:"models"`
}

// maxPrice is the highest price that a file may name, in US dollars for a
// million tokens.
const maxPrice = 1e6

// Extend makes a catalogue that also holds the models of a file; a model that
// both hold is the file's. name is the file's name for the error, which is one
// line. Cached input costs what input costs where the file does not say.
func (c *Catalogue) Extend(name string, data []byte) (*Catalogue, error) {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.Join(strings.Fields(err.Error()), " "))
	}
	out := &Catalogue{entries: map[string]Entry{}}
	for ref, e := range c.entries {
		out.entries[ref] = e
	}
	seen := map[string]bool{}
	for i, m := range f.Models {
		e := Entry{Window: m.Window, Known: true}
		var errs [3]error
		e.InputMicroUSDPerMTok, errs[0] = micro(m.Input)
		e.OutputMicroUSDPerMTok, errs[1] = micro(m.Output)
		e.CachedMicroUSDPerMTok, errs[2] = micro(m.Cached)
		if m.Cached == nil {
			e.CachedMicroUSDPerMTok = e.InputMicroUSDPerMTok
		}
		err := errors.Join(errs[:]...)
		switch {
		case !strings.Contains(m.Ref, ":") || strings.HasSuffix(m.Ref, ":"):
			return nil, fmt.Errorf("%s: models[%d]: ref must be a provider and a name, such as openai:gpt-5", name, i)
		case m.Window == 0:
			return nil, fmt.Errorf("%s: models[%d] (%s): window must be at least 1 token", name, i, m.Ref)
		case seen[m.Ref]:
			return nil, fmt.Errorf("%s: models[%d]: %s is there twice", name, i, m.Ref)
		case err != nil:
			return nil, fmt.Errorf("%s: models[%d] (%s): a price must be from 0 to %.0f US dollars for a million tokens", name, i, m.Ref, maxPrice)
		}
		seen[m.Ref] = true
		out.entries[m.Ref] = e
	}
	return out, nil
}

var errPrice = errors.New("price")

func micro(usd *float64) (uint64, error) {
	switch {
	case usd == nil:
		return 0, nil
	case !(*usd >= 0 && *usd <= maxPrice):
		return 0, errPrice
	default:
		return uint64(math.Round(*usd * million)), nil
	}
}

// Lookup finds a model by its reference, such as openai:gpt-5. A name with the
// date of a snapshot (gpt-4o-2024-08-06) is found under its name without it,
// unless it has an entry of its own. What is not found has the fallback window,
// no prices, and Known false.
func (c *Catalogue) Lookup(ref string) Entry {
	if e, ok := c.entries[ref]; ok {
		return e
	}
	if e, ok := c.entries[undated(ref)]; ok {
		return e
	}
	return Entry{Window: FallbackWindow}
}

// undated cuts -YYYY-MM-DD off the end.
func undated(ref string) string {
	const date = "-0000-00-00"
	if len(ref) <= len(date) {
		return ref
	}
	cut := len(ref) - len(date)
	for i, want := range date {
		got := rune(ref[cut+i])
		if want == '-' && got != '-' || want == '0' && (got < '0' || got > '9') {
			return ref
		}
	}
	return ref[:cut]
}
