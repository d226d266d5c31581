package webclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// Hit is a result of a search.
type Hit struct{ Title, URL, Text string }

// backend makes the requests to a search service and reads its responses.
type backend interface {
	// request returns the request for a query of at most count results. base is the address of
	// the service without a slash at its end.
	request(ctx context.Context, base, key, query string, count int) (*http.Request, error)
	// hits reads the results of a response.
	hits(body []byte) ([]Hit, error)
}

// backends are those that settings can name.
var backends = map[string]backend{webtool.Brave: brave{}, webtool.Tavily: tavily{}, webtool.SearXNG: searxng{}}

// Bounds of the results of a search.
const (
	maxTitle = 300  // bytes
	maxHit   = 1000 // bytes of a text
)

// Search asks the backend of the settings. The error is an *Error.
func (c *Client) Search(ctx context.Context, query string, count int) ([]Hit, error) {
	settings := c.Call.GetWeb().GetSearch()
	by, u, site, key, err := c.searchBackend(settings)
	if err != nil {
		return nil, &Error{Text: "The search cannot be used: " + err.Error() + "."}
	}
	request, err := by.request(ctx, strings.TrimRight(u.String(), "/"), key, query, count)
	if err != nil {
		return nil, &Error{Text: "The search cannot be used: " + c.Redact(err.Error()) + "."}
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/json")
	dialer := &dial.Dialer{Allowed: c.Operator}
	if c.Call.GetLocal() { // the hosts of a local person's file are allowed for this use
		dialer.Allowed = append(slices.Clone(dialer.Allowed), sandbox.Host{Name: site.Name, Port: site.Port})
	}
	client := dialer.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := c.exchange(client, request)
	switch {
	case err != nil:
		return nil, err
	case response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden:
		return nil, &Error{Text: fmt.Sprintf("The search backend %s refuses its key (HTTP %d).", settings.GetBackend(), response.Status)}
	case response.Status == http.StatusTooManyRequests:
		return nil, &Error{Text: fmt.Sprintf("The search backend %s accepts no more requests at present (HTTP 429).", settings.GetBackend())}
	case response.Status != http.StatusOK || response.Cut || response.Broken:
		return nil, &Error{Text: fmt.Sprintf("The search backend %s gave no results (HTTP %d).", settings.GetBackend(), response.Status)}
	}
	hits, err := by.hits(response.Body)
	if err != nil {
		return nil, &Error{Text: fmt.Sprintf("The search backend %s gave a response that cannot be read.", settings.GetBackend())}
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.URL == "" })
	hits = hits[:min(len(hits), count)]
	for i, h := range hits {
		hits[i] = Hit{
			Title: c.Redact(content.Line(content.Clean(text(h.Title)), maxTitle)), URL: c.Redact(content.Line(content.Clean(h.URL), webtool.MaxURL)),
			Text: c.Redact(content.Line(content.Clean(text(h.Text)), maxHit)),
		}
	}
	return hits, nil
}

func (c *Client) searchBackend(s *harnessv1.WebSearch) (by backend, u *url.URL, site webtool.Site, key string, err error) {
	by = backends[s.GetBackend()]
	if by == nil {
		return nil, nil, site, "", fmt.Errorf("unknown backend %q", content.Clip(s.GetBackend(), 80))
	}
	if u, site, err = webtool.ParseURL(webtool.SearchURL(s)); err == nil {
		key, err = c.expand(webtool.SearchKey(s))
		c.secret(key)
	}
	return by, u, site, key, err
}

// text returns a text without the marks of HTML that some backends put into it.
func text(marked string) string {
	if !strings.ContainsAny(marked, "<&") {
		return marked
	}
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(marked)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		default: // a mark
		}
	}
}

// brave is the Brave Search API.
type brave struct{}

func (brave) request(ctx context.Context, base, key, query string, count int) (*http.Request, error) {
	values := url.Values{"q": {query}, "count": {strconv.Itoa(count)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/res/v1/web/search?"+values.Encode(), nil)
	if err == nil {
		r.Header.Set("X-Subscription-Token", key)
	}
	return r, err
}

func (brave) hits(body []byte) ([]Hit, error) {
	var answer struct {
		Web struct {
			Results []struct{ Title, URL, Description string } `json:"results"`
		} `json:"web"`
	}
	err := json.Unmarshal(body, &answer)
	var hits []Hit
	for _, r := range answer.Web.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Description})
	}
	return hits, err
}

// tavily is the API of Tavily.
type tavily struct{}

func (tavily) request(ctx context.Context, base, key, query string, count int) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{"query": query, "max_results": count})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/search", bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}

func (tavily) hits(body []byte) ([]Hit, error) { return contentHits(body) }

// searxng is an instance of SearXNG, whose settings enable the format json.
type searxng struct{}

func (searxng) request(ctx context.Context, base, key, query string, _ int) (*http.Request, error) {
	values := url.Values{"q": {query}, "format": {"json"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/search?"+values.Encode(), nil)
	if err == nil && key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r, err
}

func (searxng) hits(body []byte) ([]Hit, error) { return contentHits(body) }

// contentHits reads results with title, url and content.
func contentHits(body []byte) ([]Hit, error) {
	var answer struct {
		Results []struct{ Title, URL, Content string } `json:"results"`
	}
	err := json.Unmarshal(body, &answer)
	var hits []Hit
	for _, r := range answer.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Content})
	}
	return hits, err
}
