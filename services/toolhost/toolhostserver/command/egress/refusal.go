package egress

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Reason is why a connection was refused.
type Reason int

// Reasons of refusals.
const (
	// NotNamed is a host that is not among those of the network.
	NotNamed Reason = iota + 1
	// NoName is an address, or no valid name.
	NoName
	// NotPublic is a host whose addresses are not public.
	NotPublic
)

// Refusal is a connection that was refused. It is an error.
type Refusal struct {
	Name   string
	Port   uint16
	Reason Reason
}

// maxRefusals bounds the recorded refusals; a name is cut for it.
const (
	maxRefusals = 20
	maxName     = 253
)

// decide returns the normal form of a name; the error is a *Refusal unless a command may reach
// it at a port.
func (p *Proxy) decide(name string, port uint16) (string, error) {
	normal, ok := sandbox.NormalName(name)
	switch {
	case !ok:
		return "", p.refuse(name, port, NoName)
	case !sandbox.Matches(p.config.Hosts, normal, port):
		return "", p.refuse(normal, port, NotNamed)
	}
	return normal, nil
}

// refuse remembers a refusal and returns it.
func (p *Proxy) refuse(name string, port uint16, why Reason) error {
	r := &Refusal{Name: name[:min(len(name), maxName)], Port: port, Reason: why}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.refused {
		if *known == *r {
			return r
		}
	}
	if len(p.refused) < maxRefusals {
		p.refused = append(p.refused, r)
	}
	return r
}

func (r *Refusal) compare(other *Refusal) int {
	return cmp.Or(int(r.Reason)-int(other.Reason), strings.Compare(r.Name, other.Name), int(r.Port)-int(other.Port))
}

// address is the host and the port as a model reads them. Names can be anything that a command
// has sent.
func (r *Refusal) address() string {
	name := r.Name
	if r.Reason == NoName {
		name = strings.Trim(strconv.QuoteToASCII(name), `"`)
	}
	return net.JoinHostPort(name, strconv.Itoa(int(r.Port)))
}

// host is the refused host as a call names it.
func (r *Refusal) host() string {
	if r.Port == 80 || r.Port == 443 {
		return r.Name
	}
	return fmt.Sprintf("%s:%d", r.Name, r.Port)
}

// Error describes the refusal, and how to ask for the host.
func (r *Refusal) Error() string {
	return fmt.Sprintf("The sandbox of this command refused %s: %s", r.address(), r.advice([]string{strconv.Quote(r.host())}))
}

// advice returns what a model can do about refusals for the reason of r.
func (r *Refusal) advice(hosts []string) string {
	switch r.Reason {
	case NotNamed:
		return fmt.Sprintf("it is not among the hosts of the network. If the task needs it, call run_command again with hosts: [%s]; a person is asked.", strings.Join(hosts, ", "))
	case NotPublic:
		return `it has no public address. If the task needs it, ask with unconfined: "why"; the operator of the tool host can allow it.`
	default:
		return "it names no host. Use the name of the host."
	}
}

// Refusals are those of a command, ordered by reason.
type Refusals []*Refusal

// Text returns the sentences for the result of a call, one for each reason; empty for no
// refusal.
func (r Refusals) Text() string {
	var lines []string
	for len(r) > 0 {
		n := 1
		for n < len(r) && r[n].Reason == r[0].Reason {
			n++
		}
		var addresses, hosts []string
		for _, one := range r[:n] {
			addresses = append(addresses, one.address())
			if host := strconv.Quote(one.host()); len(hosts) == 0 || hosts[len(hosts)-1] != host {
				hosts = append(hosts, host)
			}
		}
		lines = append(lines, fmt.Sprintf("The sandbox refused %s: %s", strings.Join(addresses, ", "), r[0].advice(hosts)))
		r = r[n:]
	}
	return strings.Join(lines, " ")
}
