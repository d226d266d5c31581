package provider

import (
	"fmt"
	"net/http"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// opener opens the wires of one provider.
type opener struct {
	catalogue *catalogue.Catalogue
	described *catalogue.Provider
	access    *access
	client    *http.Client
}

// open returns the provider that p describes.
func open(c *catalogue.Catalogue, p *catalogue.Provider, env func(string) string) (model.Provider, error) {
	a, err := newAccess(p, env)
	if err != nil {
		return nil, err
	}
	o := &opener{catalogue: c, described: p, access: a, client: newClient(p, a)}
	s := &service{catalogue: c, described: p, access: a, wires: map[catalogue.Wire]wire{}}
	for _, name := range p.Wires {
		w, err := o.open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.addressName, err)
		}
		s.wires[name] = w
	}
	return s, nil
}

// newClient returns the client of all wires. It has the proxies of the environment,
// HTTP/2 and no timeout, which would cut long streams.
func newClient(p *catalogue.Provider, a *access) *http.Client {
	var transport http.RoundTripper = http.DefaultTransport.(*http.Transport).Clone()
	if a.tokens != nil {
		transport = &authorizer{next: transport, tokens: a.tokens, header: keyHeader(p)}
	}
	return &http.Client{Transport: transport}
}

func (o *opener) open(name catalogue.Wire) (wire, error) {
	switch name {
	case catalogue.WireMessages:
		return o.messages()
	case catalogue.WireResponses:
		return o.responses()
	default:
		return o.chat()
	}
}

// entry returns the catalogue entry of a model of the provider.
func (o *opener) entry(name string) catalogue.Entry {
	return o.catalogue.Lookup(o.described.Name + ":" + name)
}

func (o *opener) efforts(name string) []harnessv1.Effort { return o.entry(name).Efforts }

// reasons reports whether a model reasons; one that is not known does.
func (o *opener) reasons(name string) bool {
	efforts := o.efforts(name)
	return efforts == nil || len(efforts) > 0
}
