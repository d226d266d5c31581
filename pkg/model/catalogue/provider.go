package catalogue

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Wire is a protocol over HTTP that a provider speaks.
type Wire string

// The wires.
const (
	// WireChat is POST chat/completions, of OpenAI and compatible servers.
	WireChat Wire = "chat"
	// WireResponses is POST responses, of OpenAI and compatible servers.
	WireResponses Wire = "responses"
	// WireMessages is POST v1/messages, of Anthropic and compatible servers.
	WireMessages Wire = "messages"
)

// Back is when reasoning goes back to the provider that made it.
type Back string

// When reasoning goes back.
const (
	// BackNever: the provider refuses it, or has no use for it.
	BackNever Back = "never"
	// BackCalls: in answers with tool calls.
	BackCalls Back = "calls"
	// BackAlways: in each answer.
	BackAlways Back = "always"
)

// ReasoningField is how the chat wire of a provider takes reasoning back.
type ReasoningField struct {
	// Field is the member of a message that has it. Empty: the one in which it came.
	Field string
	// Back is when it goes back; default BackNever.
	Back Back
	// Blank is the value of Field in messages without reasoning that would have some
	// according to Back; nil: they have no Field.
	Blank *string
	// Chunks reports whether reasoning is in chunks of the content.
	Chunks bool
	// Signature reports whether calls without a signature get a stand-in for it.
	Signature bool
}

// EffortStyle is the form in which the chat wire of a provider names the effort.
type EffortStyle string

// The styles of effort.
const (
	// EffortUnsupported: requests name no effort.
	EffortUnsupported EffortStyle = ""
	// EffortField is reasoning_effort: low.
	EffortField EffortStyle = "reasoning_effort"
	// EffortObject is reasoning: {effort: low}.
	EffortObject EffortStyle = "reasoning"
	// EffortThinking is thinking: {type: enabled} or disabled, and reasoning_effort.
	EffortThinking EffortStyle = "thinking"
	// EffortSwitch is enable_thinking: true or false, and reasoning_effort.
	EffortSwitch EffortStyle = "enable_thinking"
)

// Provider describes a model service: where it is, how it is spoken to, and what it
// takes. It is immutable.
type Provider struct {
	// Name is the prefix of its models.
	Name string
	// Aliases are other prefixes of its models.
	Aliases []string
	// Wires has one wire, or WireChat and WireResponses in either order. The first is
	// that of models whose entry names none.
	Wires []Wire
	// Address is the base address, in which ${NAME} is a variable of the
	// environment; empty: AddressVariable must be set.
	Address string
	// AddressVariable is the variable of the environment that replaces Address; may be
	// empty.
	AddressVariable string
	// Domains are those of the provider: every address in them is its own. The host of
	// Address is always one.
	Domains []string
	// KeyVariable is the variable of the environment that has the key; may be empty.
	KeyVariable string
	// KeyOptional reports whether the provider's own address can be used without a key.
	KeyOptional bool
	// KeyHeader is the header of the key; empty is the wire's: Authorization with
	// Bearer, or x-api-key for WireMessages.
	KeyHeader string
	// Headers are sent with each request.
	Headers map[string]string
	// TokenCommand is a program with its arguments that prints a short-lived key; empty:
	// none. It is used if KeyVariable is not set.
	TokenCommand []string
	// Reasoning is how reasoning goes back on WireChat.
	Reasoning ReasoningField
	// Effort is the form of the effort on WireChat.
	Effort EffortStyle
	// CacheKey reports whether requests name a key of the prompt cache on WireChat.
	CacheKey bool
	// AnswerSchema reports whether requests have the JSON Schema of an answer.
	AnswerSchema bool
	// NoStreamOptions leaves stream_options out of requests on WireChat.
	NoStreamOptions bool
	// NoUserAfterResults puts a fixed answer between results of calls and a message of the
	// user on WireChat.
	NoUserAfterResults bool
	// ShortCallIDs replaces ids of calls on WireChat by nine letters and digits.
	ShortCallIDs bool
	// Body are additional members of each request.
	Body map[string]json.RawMessage
	// Images and PDF report whether models take them whose entry does not say.
	Images, PDF bool
	// Choices are the models for a run that names none, the first choice first: it gets the
	// first of them that the provider lists.
	Choices []string
	// Small is the model for short calls that are no turns, such as judging work; empty: the
	// run's model makes them.
	Small string
	// ModelsOf is the provider whose entries, except for prices, apply to models of the
	// same name that have no entry; may be empty. ModelPrefix is removed from the name
	// first.
	ModelsOf, ModelPrefix string
}

func (p *Provider) Speaks(w Wire) bool { return slices.Contains(p.Wires, w) }

// Provider returns the provider with a name or an alias; nil if there is none.
func (c *Catalogue) Provider(name string) *Provider {
	if p := c.providers[name]; p != nil {
		return p
	}
	for _, p := range c.providers {
		if slices.Contains(p.Aliases, name) {
			return p
		}
	}
	return nil
}

// Providers returns all providers: the embedded ones in their order, then those of
// files.
func (c *Catalogue) Providers() []*Provider {
	out := make([]*Provider, len(c.order))
	for i, name := range c.order {
		out[i] = c.providers[name]
	}
	return out
}

// ProviderOf returns the provider of a model and its name there. p is nil if the
// catalogue does not have it, or if ref has no prefix.
func (c *Catalogue) ProviderOf(ref string) (p *Provider, name string) {
	prefix, name, ok := strings.Cut(ref, ":")
	if !ok {
		return nil, ""
	}
	return c.Provider(prefix), name
}

// Variables returns the variables of the environment that providers read: of keys, addresses,
// and those in addresses and headers.
func (c *Catalogue) Variables() []string {
	var names []string
	add := func(text string) {
		for _, m := range variableIn.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	for _, p := range c.Providers() {
		names = append(names, p.KeyVariable, p.AddressVariable)
		add(p.Address)
		for _, value := range p.Headers {
			add(value)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// variableIn matches ${NAME}.
var variableIn = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Small returns the model for short calls of the provider of ref, as PROVIDER:NAME; empty if its
// catalogue entry names none.
func (c *Catalogue) Small(ref string) string {
	p, _ := c.ProviderOf(ref)
	if p == nil || p.Small == "" {
		return ""
	}
	return p.Name + ":" + p.Small
}
