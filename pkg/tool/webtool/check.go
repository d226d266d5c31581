package webtool

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// Bounds of the settings.
const (
	maxAllow       = 100
	maxCredentials = 32
	maxHeaders     = 16
	maxText        = 8 << 10 // bytes of a value
)

// Backends of web_search.
const (
	Brave   = "brave"
	Tavily  = "tavily"
	SearXNG = "searxng"
)

// SearchURL returns the address of a backend, empty if it has none.
func SearchURL(s *harnessv1.WebSearch) string {
	switch {
	case s.GetUrl() != "":
		return s.GetUrl()
	case s.GetBackend() == Brave:
		return "https://api.search.brave.com"
	case s.GetBackend() == Tavily:
		return "https://api.tavily.com"
	}
	return ""
}

// SearchKey returns the key of a backend as the settings have it; empty if it needs none.
func SearchKey(s *harnessv1.WebSearch) string {
	switch {
	case s.GetKey() != "":
		return s.GetKey()
	case s.GetBackend() == Brave:
		return "${BRAVE_API_KEY}"
	case s.GetBackend() == Tavily:
		return "${TAVILY_API_KEY}"
	}
	return ""
}

var headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") })

// reserved are headers that the transport sets.
var reserved = []string{"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}

// ValidHeader reports whether a request may have a header.
func ValidHeader(name, value string) bool {
	return headerName().MatchString(name) && len(name) <= 256 && len(value) <= maxText && !strings.ContainsAny(value, "\r\n\x00") &&
		!slices.Contains(reserved, strings.ToLower(name))
}

// Check refuses settings that cannot be used. web may be nil. The error is a *fault.FieldError
// with a place in web.
func Check(web *harnessv1.Web) error {
	if n := len(web.GetAllow()); n > maxAllow {
		return fault.Invalid("allow", "%d hosts exceed the limit of %d", n, maxAllow)
	}
	for i, text := range web.GetAllow() {
		if _, err := ParseHost(text); err != nil {
			return fault.Invalid(fmt.Sprintf("allow[%d]", i), "%s", err)
		}
	}
	if n := len(web.GetCredentials()); n > maxCredentials {
		return fault.Invalid("credentials", "%d hosts exceed the limit of %d", n, maxCredentials)
	}
	seen := map[string]bool{}
	for i, c := range web.GetCredentials() {
		at := fmt.Sprintf("credentials[%d]", i)
		if err := fault.In(at, checkCredential(c)); err != nil {
			return err
		}
		if seen[strings.ToLower(c.GetHost())] {
			return fault.Invalid(at+".host", "duplicate host %q", c.GetHost())
		}
		seen[strings.ToLower(c.GetHost())] = true
	}
	if web.GetSearch() == nil {
		return nil
	}
	return fault.In("search", checkSearch(web.GetSearch()))
}

func checkCredential(c *harnessv1.WebCredential) error {
	if _, err := ParseHost(c.GetHost()); err != nil {
		return fault.Invalid("host", "%s", err)
	}
	if n := len(c.GetHeaders()); n == 0 || n > maxHeaders {
		return fault.Invalid("headers", "%d headers: expected 1 to %d", n, maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(c.GetHeaders())) {
		if !ValidHeader(name, c.GetHeaders()[name]) {
			return fault.Invalid("headers", "invalid header %q", content.Clip(name, 80))
		}
	}
	return nil
}

func checkSearch(s *harnessv1.WebSearch) error {
	switch s.GetBackend() {
	case Brave, Tavily, SearXNG:
	default:
		return fault.Invalid("backend", "unknown backend %q: must be brave, tavily or searxng", content.Clip(s.GetBackend(), 80))
	}
	if len(s.GetKey()) > maxText || strings.ContainsAny(s.GetKey(), "\r\n\x00") {
		return fault.Invalid("key", "must be one line of at most %d bytes", maxText)
	}
	if SearchURL(s) == "" {
		return fault.Invalid("url", "missing: searxng has no default address")
	}
	if len(mcptool.VariablesOf(s.GetUrl())) > 0 {
		return fault.Invalid("url", "must have no variables: put what is secret into key")
	}
	u, _, err := ParseURL(SearchURL(s))
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.Invalid("url", "invalid address %q: must be http:// or https:// with a host, without a password, a query and a fragment", content.Clip(s.GetUrl(), 200))
	}
	return nil
}
