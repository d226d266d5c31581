package catalogue

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// Owns reports whether an address is one of the provider's own, not that of a
// compatible server.
func (p *Provider) Owns(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	domains := p.Domains
	if own, err := url.Parse(p.Address); err == nil {
		domains = append(slices.Clip(domains), own.Hostname())
	}
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(domains, func(domain string) bool {
		domain = strings.ToLower(domain)
		return domain != "" && (host == domain || strings.HasSuffix(host, "."+domain))
	})
}

// errBrace is returned for a text in which a variable is not written as ${NAME}.
var errBrace = errors.New("expected ${NAME}")

// Expand replaces each ${NAME} in a text by what env returns for NAME.
func Expand(text string, env func(string) string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !validVariable(name) {
			return "", errBrace
		}
		out.WriteString(env(name))
		text = after
	}
}

func validVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
