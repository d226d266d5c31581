package toolhostserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

const (
	braveHits = `{"type":"search","web":{"results":[{"title":"First <b>page</b>","url":"https://one.example/","description":"About &amp; more"},
		{"title":"Second","url":"https://two.example/","description":"with %s in it"},{"title":"no address"}]}}`
	contentHits = `{"query":"x","results":[{"title":"First page","url":"https://one.example/","content":"About & more","score":0.9},
		{"title":"Second","url":"https://two.example/","content":"with %s in it"},{"title":"no address"}],"answers":[]}`
)

// backends are strict servers of the protocols of the backends. Each returns why it refuses a
// request; empty if it does not.
var backends = map[string]struct {
	check  func(r *http.Request, body string) string
	answer string
}{
	webtool.Brave: {func(r *http.Request, body string) string {
		if q := r.URL.Query(); r.Method != "GET" || r.URL.Path != "/res/v1/web/search" || q.Get("q") != "café & co" || q.Get("count") != "5" || len(q) != 2 || body != "" {
			return r.Method + " " + r.URL.String()
		}
		return sentWith(r, "X-Subscription-Token", "very-secret-key")
	}, braveHits},
	webtool.Tavily: {func(r *http.Request, body string) string {
		var given map[string]any
		if err := json.Unmarshal([]byte(body), &given); err != nil || r.Method != "POST" || r.URL.String() != "/search" || len(given) != 2 ||
			given["query"] != "café & co" || given["max_results"] != 5.0 || r.Header.Get("Content-Type") != "application/json" {
			return r.Method + " " + r.URL.String() + " " + body
		}
		return sentWith(r, "Authorization", "Bearer very-secret-key")
	}, contentHits},
	webtool.SearXNG: {func(r *http.Request, body string) string {
		if q := r.URL.Query(); r.Method != "GET" || r.URL.Path != "/sub/search" || q.Get("q") != "café & co" || q.Get("format") != "json" || body != "" {
			return r.Method + " " + r.URL.String()
		}
		return sentWith(r, "Authorization", "")
	}, contentHits},
}

func sentWith(r *http.Request, name, want string) string {
	if got := r.Header.Get(name); got != want || r.Header.Get("Accept") != "application/json" {
		return fmt.Sprint(r.Header)
	}
	return ""
}

func TestWebSearchAsksEachBackend(t *testing.T) {
	t.Parallel()
	for name, b := range backends {
		host := site(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if why := b.check(r, string(body)); why != "" {
				t.Errorf("%s: %s", name, why)
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, b.answer, "very-secret-key")
		})
		h := newHost(t, Config{Environment: func(string) []string {
			return []string{"BRAVE_API_KEY=very-secret-key", "TAVILY_API_KEY=very-secret-key"}
		}})
		search := &harnessv1.WebSearch{Backend: name, Url: "http://" + host}
		if name == webtool.SearXNG {
			search.Url += "/sub/"
		}
		call := &harnessv1.WebCall{Web: &harnessv1.Web{Search: search}, Local: true}
		arguments := map[string]any{"query": "café & co", "count": 5}
		r := h.webCall(webtool.Search, call, arguments)
		hidden := "[credential]"
		if name == webtool.SearXNG {
			hidden = "very-secret-key" // it has no key
		}
		want := "[data from " + name + "]\n1. First page\n   https://one.example/\n   About & more\n\n2. Second\n   https://two.example/\n   with " + hidden + " in it"
		if r.GetIsError() || r.GetResult() != want {
			t.Errorf("%s: %q, want %q", name, r.GetResult(), want)
		}
		call.Local = false
		if r := h.webCall(webtool.Search, call, arguments); !r.GetIsError() || !strings.Contains(r.GetResult(), "only the ports 80 and 443") {
			t.Errorf("%s: a private address that the file of a tenant names: %v", name, r)
		}
		call.Local = true
		search.Url = strings.Replace(search.GetUrl(), "localhost", "127.0.0.1", 1)
		if r := h.webCall(webtool.Search, call, arguments); r.GetIsError() {
			t.Errorf("%s: an address of this machine that a local person names: %v", name, r)
		}
	}
}

// TestWebSearchBadBackends: whatever a backend answers, the call fails with a reason.
func TestWebSearchBadBackends(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch strings.Split(r.URL.Path, "/")[1] {
		case "garbage":
			_, _ = w.Write([]byte("<html>\xff"))
		case "redirect":
			http.Redirect(w, r, "/none", http.StatusFound)
		case "refuses":
			w.WriteHeader(http.StatusUnauthorized)
		case "busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "endless":
			for {
				if _, err := w.Write([]byte(strings.Repeat(" ", 64<<10))); err != nil {
					return
				}
			}
		case "none":
			fmt.Fprint(w, `{"results":[]}`)
		case "many":
			fmt.Fprint(w, `{"results":[{"url":"a"},{"url":"b"},{"url":"c"}]}`)
		case "other":
			fmt.Fprint(w, `{"results":[{"title":1}]}`)
		}
	})
	for path, want := range map[string]string{
		"garbage": "cannot be read", "redirect": "HTTP 302", "refuses": "refuses its key", "busy": "no more requests", "endless": "gave no results", "none": "Nothing was found.", "other": "cannot be read",
	} {
		call := &harnessv1.WebCall{Web: &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: webtool.SearXNG, Url: "http://" + host + "/" + path}}, Local: true}
		if r := h.webCall(webtool.Search, call, map[string]any{"query": "x"}); !strings.Contains(r.GetResult(), want) || r.GetIsError() == (path == "none") {
			t.Errorf("%s: %v", path, r)
		}
	}
	call := &harnessv1.WebCall{Web: &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: webtool.SearXNG, Url: "http://" + host + "/many"}}, Local: true}
	if r := h.webCall(webtool.Search, call, map[string]any{"query": "x", "count": 2}); !strings.Contains(r.GetResult(), "2. ") || strings.Contains(r.GetResult(), "3. ") {
		t.Errorf("more results than were asked for: %v", r)
	}
	call = &harnessv1.WebCall{Web: &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: webtool.Tavily, Url: "http://" + host, Key: "${NOT_SET_ANYWHERE}"}}, Local: true}
	if r := h.webCall(webtool.Search, call, map[string]any{"query": "x"}); !r.GetIsError() || !strings.Contains(r.GetResult(), "NOT_SET_ANYWHERE is not set") {
		t.Errorf("%v", r)
	}
}
