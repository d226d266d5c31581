// Package webtool decides about the web tools of an agent: which it has, which hosts it reaches
// without asking, and whether its settings are valid. It is pure. The tool host sends the
// requests.
package webtool

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// Names of the tools.
const (
	Fetch     = "web_fetch"
	Request   = "http_request"
	Search    = "web_search"
	Calculate = "calculate"
)

// Is reports whether a name is that of a tool which agents have only if their settings name it.
func Is(name string) bool {
	return name == Fetch || name == Request || name == Search || name == Calculate
}

// Has reports whether an agent has one of the tools. web may be nil.
func Has(web *harnessv1.Web, name string) bool {
	switch name {
	case Fetch:
		return web.GetFetch()
	case Request:
		return web.GetRequest()
	case Search:
		return web.GetSearch() != nil
	case Calculate:
		return web.GetCalculate()
	}
	return false
}

// Visits reports whether calls of a tool have an argument url, whose host is approved.
func Visits(name string) bool { return name == Fetch || name == Request }

// Reaches reports whether an agent has a web tool that reads addresses.
func Reaches(web *harnessv1.Web) bool { return Has(web, Fetch) || Has(web, Request) }

// Reads reports whether a method of HTTP only reads.
func Reads(method string) bool {
	return method == "" || strings.EqualFold(method, "GET") || strings.EqualFold(method, "HEAD")
}

// Allowed returns the hosts that an agent reaches without asking. It leaves out what Check
// refuses.
func Allowed(web *harnessv1.Web) []sandbox.Host { return Hosts(web.GetAllow()) }

// Hosts parses hosts, leaving out those that are invalid.
func Hosts(texts []string) []sandbox.Host {
	var hosts []sandbox.Host
	for _, text := range texts {
		if h, err := ParseHost(text); err == nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Variables returns the names of the variables that the settings of an agent name.
func Variables(web *harnessv1.Web) []string {
	var names []string
	if s := web.GetSearch(); s != nil {
		names = append(names, mcptool.VariablesOf(SearchKey(s))...)
	}
	for _, c := range web.GetCredentials() {
		for _, value := range c.GetHeaders() {
			names = append(names, mcptool.VariablesOf(value)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
