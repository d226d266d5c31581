package webtool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://Example.COM./a?b#c": "example.com true", "http://example.com:8080": "example.com:8080 false", "http://example.com:443": "example.com false",
		"http://1.2.3.4": "1.2.3.4 false", "http://[::ffff:1.2.3.4]:80": "1.2.3.4 false", "http://[2001:db8::1]:81/": "[2001:db8::1]:81 false",
		" https://xn--mnchen-3ya.example ": "xn--mnchen-3ya.example true",
		"ftp://example.com":                "", "example.com": "", "https://": "", "https://a@example.com": "", "http://0x7f000001": "", "http://127.1": "",
		"http://[fe80::1%25eth0]": "", "http://münchen.example": "", "http://a b": "", "http://example.com:0": "", "http://example.com:99999": "", "": "",
		"https://example.com/" + strings.Repeat("a", MaxURL): "",
	} {
		got := ""
		if _, site, err := ParseURL(text); err == nil {
			got = fmt.Sprint(site, " ", site.Secure)
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestHostsMatch(t *testing.T) {
	hosts := Hosts([]string{"a.example", "b.example:8080", "*.c.example", "10.0.0.1", "[::1]:81", "not a host", "*"})
	for text, want := range map[string]bool{
		"https://a.example": true, "http://a.example": true, "http://a.example:8080": false, "http://b.example:8080": true, "http://b.example": false,
		"http://x.c.example": true, "http://c.example": false, "http://10.0.0.1": true, "http://10.0.0.1:81": false, "http://[::1]:81": true, "http://[::1]": false,
		"http://other.example": false,
	} {
		_, site, err := ParseURL(text)
		if err != nil || site.In(hosts) != want {
			t.Errorf("%s: %v, %v", text, site.In(hosts), err)
		}
	}
}

func TestCheck(t *testing.T) {
	credential := func(host string, headers map[string]string) []*harnessv1.WebCredential {
		return []*harnessv1.WebCredential{{Host: host, Headers: headers}}
	}
	token := map[string]string{"Authorization": "Bearer ${TOKEN}"}
	search := func(backend, url string) *harnessv1.Web {
		return &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: backend, Url: url}}
	}
	for name, c := range map[string]struct {
		web  *harnessv1.Web
		want string
	}{
		"nothing":                 {nil, ""},
		"everything":              {&harnessv1.Web{Fetch: true, Allow: []string{"a.example", "127.0.0.1:8080"}, Credentials: credential("a.example", token), Search: &harnessv1.WebSearch{Backend: Brave}}, ""},
		"a host with a scheme":    {&harnessv1.Web{Allow: []string{"a.example", "https://a.example"}}, "allow[1]"},
		"every host":              {&harnessv1.Web{Allow: []string{"*"}}, "allow[0]"},
		"too many hosts":          {&harnessv1.Web{Allow: make([]string, 101)}, "allow"},
		"a credential without":    {&harnessv1.Web{Credentials: credential("a.example", nil)}, "credentials[0].headers"},
		"a credential for a path": {&harnessv1.Web{Credentials: credential("a.example/x", token)}, "credentials[0].host"},
		"two for a host":          {&harnessv1.Web{Credentials: append(credential("a.example", token), credential("A.example", token)...)}, "credentials[1].host"},
		"a line feed":             {&harnessv1.Web{Credentials: credential("a.example", map[string]string{"A": "b\r\nC: d"})}, "credentials[0].headers"},
		"a header of HTTP itself": {&harnessv1.Web{Credentials: credential("a.example", map[string]string{"host": "b"})}, "credentials[0].headers"},
		"an unknown backend":      {search("google", ""), "search.backend"},
		"no address":              {search(SearXNG, ""), "search.url"},
		"a file":                  {search(SearXNG, "file:///etc"), "search.url"},
		"a password":              {search(SearXNG, "http://a:b@c.example"), "search.url"},
		"an address":              {search(SearXNG, "http://127.0.0.1:8888/sub"), ""},
	} {
		err := Check(c.web)
		var wrong *fault.FieldError
		if errors.As(err, &wrong); c.want == "" && err != nil || c.want != "" && (wrong == nil || wrong.Field != c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestVariables(t *testing.T) {
	web := &harnessv1.Web{
		Search:      &harnessv1.WebSearch{Backend: Tavily},
		Credentials: []*harnessv1.WebCredential{{Host: "a", Headers: map[string]string{"A": "${A_TOKEN}", "B": "x ${B_TOKEN:-none}"}}},
	}
	if got := Variables(web); !slices.Equal(got, []string{"A_TOKEN", "B_TOKEN", "TAVILY_API_KEY"}) {
		t.Error(got)
	}
}
