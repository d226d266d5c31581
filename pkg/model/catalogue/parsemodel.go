package catalogue

import (
	"cmp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// models returns a reader of the list of models:
//
//	models:
//	  - {ref: "openai:local", window: 32768, max_output: 4096, input: 0.1, cached: 0.01, written: 0.1, output: 0.4,
//	     long: {above: 200000, input: 0.2, output: 0.6}, images: true}
//
// Prices are in US dollars for a million tokens, as providers write them. Input from
// the cache and input into it cost what input costs where the file does not say.
func (p *parser) models(out *contents) reader {
	seen := map[string]bool{}
	return p.list("models", func(n *yaml.Node) error {
		m, err := p.model(n)
		if err != nil {
			return err
		}
		if seen[m.ref] {
			return p.fail(n, "duplicate model %s", m.ref)
		}
		seen[m.ref] = true
		out.models = append(out.models, m)
		return nil
	})
}

func (p *parser) model(n *yaml.Node) (placedModel, error) {
	m := placedModel{at: n, entry: Entry{Known: true}}
	e := &m.entry
	var prices priceList
	if err := p.read(n, "a model", p.modelMembers(&m, &prices)...); err != nil {
		return m, err
	}
	e.Prices, e.Priced = prices.prices(), prices.input != nil || prices.output != nil
	switch {
	case m.ref == "":
		return m, p.fail(n, refForm)
	case e.Window == 0:
		return m, p.fail(n, "%s has no window: say how many tokens of input it takes", m.ref)
	case !e.Priced && (prices != priceList{} || e.LongAbove > 0):
		return m, p.fail(n, "%s has prices without input and output: say these too", m.ref)
	}
	return m, nil
}

// modelMembers are the fields of a model.
func (p *parser) modelMembers(m *placedModel, prices *priceList) []member {
	return slices.Concat([]member{
		{"ref", p.ref(&m.ref)}, {"window", p.tokens(&m.entry.Window)}, {"max_output", p.tokens(&m.entry.MaxOutput)},
	}, prices.members(p), []member{{"long", p.long(&m.entry)}}, p.abilities(&m.entry))
}

// abilities are the fields that describe what a model takes.
func (p *parser) abilities(e *Entry) []member {
	return []member{
		{"wire", choice(p, &e.Wire, WireChat, WireResponses)},
		{"efforts", p.efforts(&e.Efforts)},
		{"thinking", choice(p, &e.Thinking, ThinkingAdaptive, ThinkingBudget, ThinkingNone)},
		{"always_on", p.flag(&e.AlwaysOn)},
		{"reads", p.texts(&e.Reads)},
		{"images", p.optionalFlag(&e.Images)},
		{"pdf", p.optionalFlag(&e.PDF)},
		{"image_tokens", p.imageTokens(&e.ImageTokens)},
		{"token_factor", p.tokenFactor(&e.TokenFactor)},
	}
}

const refForm = "ref must be a provider and a name, such as openai:gpt-5"

func (p *parser) ref(into *string) reader {
	return func(_ string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || !named(value) {
			return p.fail(n, refForm)
		}
		*into = value
		return nil
	}
}

// priceList are the prices of a file, in millionths of a US dollar; nil are missing.
type priceList struct{ input, cached, written, output *uint64 }

func (l *priceList) members(p *parser) []member {
	return []member{{"input", p.price(&l.input)}, {"cached", p.price(&l.cached)}, {"written", p.price(&l.written)}, {"output", p.price(&l.output)}}
}

// prices fills in the missing prices.
func (l *priceList) prices() (out Prices) {
	for _, price := range []struct {
		from, instead *uint64
		into          *uint64
	}{
		{l.input, nil, &out.Input}, {l.cached, l.input, &out.Cached}, {l.written, l.input, &out.Written}, {l.output, nil, &out.Output},
	} {
		if from := cmp.Or(price.from, price.instead); from != nil {
			*price.into = *from
		}
	}
	return out
}

// long returns a reader of the prices of long requests.
func (p *parser) long(e *Entry) reader {
	return func(name string, n *yaml.Node) error {
		var prices priceList
		if err := p.read(n, name, append([]member{{"above", p.tokens(&e.LongAbove)}}, prices.members(p)...)...); err != nil {
			return err
		}
		if e.LongAbove == 0 || prices.input == nil || prices.output == nil {
			return p.fail(n, "long must say above how many tokens of input it begins (above), and its prices (input, output)")
		}
		e.Long = prices.prices()
		return nil
	}
}

// maxTokensOfPatch limits the tokens of a patch, and those of an image without any.
const maxTokensOfPatch = 1e6

func (p *parser) imageTokens(into *ImageTokens) reader {
	return func(name string, n *yaml.Node) error {
		*into = ImageTokens{Each: 1}
		err := p.read(n, name, member{"patch", p.number(&into.Patch, "of pixels")},
			member{"max_side", p.number(&into.MaxSide, "of pixels")}, member{"short_side", p.number(&into.ShortSide, "of pixels")},
			member{"max_patches", p.number(&into.MaxPatches, "of patches")},
			member{"each", p.decimal(&into.Each, maxTokensOfPatch, "number of tokens")},
			member{"base", p.decimal(&into.Base, maxTokensOfPatch, "number of tokens")})
		if err == nil && into.Patch == 0 {
			err = p.fail(n, "%s has no patch: say how many pixels the side of a patch has", name)
		}
		return err
	}
}

func (p *parser) tokenFactor(into *float64) reader {
	return func(name string, n *yaml.Node) error {
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(v >= tokens.MinFactor && v <= tokens.MaxFactor) {
			return p.fail(n, "%s must be a number from %g to %g", name, tokens.MinFactor, tokens.MaxFactor)
		}
		*into = v
		return nil
	}
}
