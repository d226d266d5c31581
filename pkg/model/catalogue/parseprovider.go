package catalogue

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reservedName is the prefix of scripted models, which have no provider.
const reservedName = "script"

// ownMembers are the members of a request that the harness sets.
var ownMembers = []string{
	"model", "messages", "input", "instructions", "system", "tools", "stream", "stream_options", "store", "include",
	"max_tokens", "max_output_tokens", "prompt_cache_key",
}

// ownHeaders are the headers of a request that the harness sets.
var ownHeaders = []string{"Accept", "Content-Length", "Content-Type", "Host", "Transfer-Encoding", "User-Agent"}

// providers returns a reader of the list of providers:
//
//	providers:
//	  - {name: local, wire: chat, address: "http://127.0.0.1:8000/v1", key_optional: true}
func (p *parser) providers(out *contents) reader {
	seen := map[string]bool{}
	return p.list("providers", func(n *yaml.Node) error {
		m, err := p.provider(n)
		if err != nil {
			return err
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if seen[name] {
				return p.fail(n, "duplicate provider %s", name)
			}
			seen[name] = true
		}
		out.providers = append(out.providers, placedProvider{m, n})
		return nil
	})
}

func (p *parser) provider(n *yaml.Node) (*Provider, error) {
	out := &Provider{}
	err := p.read(n, "a provider", slices.Concat(p.identity(out), p.access(out), p.dialect(out))...)
	switch {
	case err != nil:
	case out.Name == "":
		err = p.fail(n, "a provider has no name: set name to the prefix of its models")
	case len(out.Wires) == 0:
		err = p.fail(n, "provider %s has no wire: set wire to %s", out.Name, wireNames)
	case out.Address == "" && out.AddressVariable == "":
		err = p.fail(n, "provider %s has no address: set address, or address_variable to a variable of the environment that has it", out.Name)
	case out.ModelPrefix != "" && out.ModelsOf == "":
		err = p.fail(n, "provider %s has a model_prefix and no models_of: name the provider whose models it has", out.Name)
	default:
		err = p.checkAccess(n, out)
	}
	return out, err
}

// identity are the fields that name a provider and its wires.
func (p *parser) identity(out *Provider) []member {
	return []member{
		{"name", p.providerName(&out.Name)},
		{"aliases", func(name string, n *yaml.Node) error {
			return p.list("names", func(n *yaml.Node) error {
				var alias string
				err := p.providerName(&alias)("an alias", n)
				out.Aliases = append(out.Aliases, alias)
				return err
			})(name, n)
		}},
		{"wire", p.wires(&out.Wires)},
		{"choices", p.texts(&out.Choices)},
		{"small", p.text(&out.Small)},
		{"models_of", p.providerName(&out.ModelsOf)},
		{"model_prefix", p.text(&out.ModelPrefix)},
	}
}

// access are the fields for the address of a provider and its credentials.
func (p *parser) access(out *Provider) []member {
	return []member{
		{"address", p.address(&out.Address)},
		{"address_variable", p.variable(&out.AddressVariable)},
		{"domains", p.texts(&out.Domains)},
		{"key_variable", p.variable(&out.KeyVariable)},
		{"key_optional", p.flag(&out.KeyOptional)},
		{"header", p.header(&out.KeyHeader)},
		{"headers", p.headers(&out.Headers)},
		{"token_command", p.command(&out.TokenCommand)},
	}
}

// dialect are the fields for the form of requests to a provider.
func (p *parser) dialect(out *Provider) []member {
	return []member{
		{"reasoning", p.reasoning(&out.Reasoning)},
		{"effort", choice(p, &out.Effort, EffortField, EffortObject, EffortThinking, EffortSwitch)},
		{"cache_key", p.flag(&out.CacheKey)},
		{"answer_schema", p.flag(&out.AnswerSchema)},
		{"no_stream_options", p.flag(&out.NoStreamOptions)},
		{"no_user_after_results", p.flag(&out.NoUserAfterResults)},
		{"short_call_ids", p.flag(&out.ShortCallIDs)},
		{"body", p.members(&out.Body, ownMembers...)},
		{"images", p.flag(&out.Images)},
		{"pdf", p.flag(&out.PDF)},
	}
}

func (p *parser) providerName(into *string) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || !validName(value) {
			return p.fail(n, "%s must be 1 to 64 letters, digits, and - _ . (not first)", name)
		}
		if value == reservedName {
			return p.fail(n, "%s cannot be %s, which is the prefix of scripted models: choose another", name, reservedName)
		}
		*into = value
		return nil
	}
}

// validName reports whether a text can be the prefix of models.
func validName(name string) bool {
	const maxName = 64
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-_.", rune(c))) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

const wireNames = "chat, responses, messages, or [chat, responses] in either order"

// wires returns a reader of one wire, or of two of which the first is the usual one.
func (p *parser) wires(into *[]Wire) reader {
	return func(name string, n *yaml.Node) error {
		names := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			names = n.Content
		}
		*into = nil
		for _, each := range names {
			value, ok := scalar(resolve(each))
			wire := Wire(value)
			if !ok || !slices.Contains([]Wire{WireChat, WireResponses, WireMessages}, wire) || slices.Contains(*into, wire) {
				return p.fail(each, "%s must be %s", name, wireNames)
			}
			*into = append(*into, wire)
		}
		if len(*into) == 0 || len(*into) > 1 && slices.Contains(*into, WireMessages) {
			return p.fail(n, "%s must be %s", name, wireNames)
		}
		return nil
	}
}

// address returns a reader of an http or https address, in which ${NAME} is a
// variable.
func (p *parser) address(into *string) reader {
	return func(name string, n *yaml.Node) error {
		if err := p.text(into)(name, n); err != nil {
			return err
		}
		plain, err := Expand(*into, func(string) string { return "x" })
		u, parseErr := url.Parse(plain)
		if err != nil || parseErr != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return p.fail(n, "%s must be an http or https address, such as http://127.0.0.1:8000/v1", name)
		}
		return nil
	}
}

func (p *parser) variable(into *string) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || !validVariable(value) {
			return p.fail(n, "%s must be the name of a variable of the environment, such as LOCAL_API_KEY", name)
		}
		*into = value
		return nil
	}
}

func (p *parser) header(into *string) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || !validHeader(value) {
			return p.fail(n, "%s must be the name of a header, such as x-api-key", name)
		}
		*into = http.CanonicalHeaderKey(value)
		return nil
	}
}

// headers returns a reader of a mapping from headers to values.
func (p *parser) headers(into *map[string]string) reader {
	return func(name string, n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return p.fail(n, "%s must be a mapping from the names of headers to their values", name)
		}
		*into = map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			var header, value string
			if err := p.header(&header)("a name in "+name, n.Content[i]); err != nil {
				return err
			}
			if err := p.text(&value)(header, resolve(n.Content[i+1])); err != nil {
				return err
			}
			if _, err := Expand(value, strings.ToUpper); err != nil {
				return p.fail(n.Content[i+1], "%s has a variable that is not written as ${NAME}", header)
			}
			if _, twice := (*into)[header]; twice || slices.Contains(ownHeaders, header) {
				return p.fail(n.Content[i], "%s cannot set %s: it is a duplicate, or the harness sets it", name, header)
			}
			(*into)[header] = value
		}
		return nil
	}
}

func validHeader(name string) bool {
	for i := range len(name) {
		c := name[i]
		if letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'; !letter && c != '-' && c != '_' {
			return false
		}
	}
	return name != ""
}

func (p *parser) command(into *[]string) reader {
	return func(name string, n *yaml.Node) error {
		if err := p.texts(into)(name, n); err != nil {
			return err
		}
		if len(*into) == 0 {
			return p.fail(n, "%s must be a program and its arguments, such as [gcloud, auth, print-access-token]", name)
		}
		return nil
	}
}

// reasoning returns a reader of how reasoning goes back.
func (p *parser) reasoning(into *ReasoningField) reader {
	return func(name string, n *yaml.Node) error {
		var blank string
		err := p.read(n, name,
			member{"field", p.text(&into.Field)},
			member{"back", choice(p, &into.Back, BackNever, BackCalls, BackAlways)},
			member{"blank", func(name string, n *yaml.Node) error {
				value, ok := scalar(n)
				if !ok {
					return p.fail(n, "%s must be a text; it may be empty", name)
				}
				blank, into.Blank = value, &blank
				return nil
			}},
			member{"chunks", p.flag(&into.Chunks)}, member{"signature", p.flag(&into.Signature)})
		if err == nil && into.Blank != nil && (into.Field == "" || cmp.Or(into.Back, BackNever) == BackNever) {
			err = p.fail(n, "%s.blank needs field, and back that is calls or always", name)
		}
		return err
	}
}

// checkAccess returns an error if the address does not fit the wire, or a header is set
// twice.
func (p *parser) checkAccess(n *yaml.Node, m *Provider) error {
	if m.Speaks(WireMessages) && strings.HasSuffix(strings.TrimRight(m.Address, "/"), "/v1") {
		return p.fail(n, "provider %s has the wire messages: its address must not include the version path /v1", m.Name)
	}
	if _, twice := m.Headers[m.KeyHeader]; twice {
		return p.fail(n, "provider %s has %s in headers, which is the header of its key: remove it there", m.Name, m.KeyHeader)
	}
	return nil
}
