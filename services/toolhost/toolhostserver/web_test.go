package toolhostserver

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// site serves handler at localhost:PORT of this machine, whose address is not public.
func site(t *testing.T, handler http.HandlerFunc) (host string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return strings.Replace(strings.TrimPrefix(s.URL, "http://"), "127.0.0.1", "localhost", 1)
}

// webCall executes a call of a web tool of an agent with these settings.
func (h *host) webCall(tool string, call *harnessv1.WebCall, arguments map[string]any) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	req := h.request(tool, "", arguments)
	req.Web = call
	return h.execute(req)
}

// local are the settings of a local person who allows hosts.
func local(hosts ...string) *harnessv1.WebCall {
	return &harnessv1.WebCall{Web: &harnessv1.Web{Fetch: true, Request: true, Calculate: true, Allow: hosts}, Local: true, Hosts: hosts}
}

const article = `<!doctype html><html><head><title>An article</title><script>steal()</script><style>p{}</style></head>
<body><h1>Heading</h1><p>Some <b>bold</b> text and <a href="/other">a link</a>.</p><table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>`

func TestWebFetchReadsPages(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	pages := map[string]struct {
		kind string
		body []byte
		want []string
		not  []string
		fail bool
	}{
		"/html":    {"text/html", []byte(article), []string{"[data from HOST] http://HOST/html", "Title: An article", "# Heading", "**bold**", "[a link](http://HOST/other)", "| 1"}, []string{"steal", "p{}", "<b>"}, false},
		"/json":    {"application/json", []byte(`{"a": 1}`), []string{`{"a": 1}`}, nil, false},
		"/latin":   {"text/html; charset=iso-8859-1", []byte("<p>caf\xe9</p>"), []string{"café"}, nil, false},
		"/invalid": {"text/plain; charset=utf-8", []byte("a\xff\xfeb"), []string{"a\uFFFD", "b"}, nil, false},
		"/hidden":  {"text/plain", []byte("a\u202eb\x00"), []string{"a\uFFFDb"}, []string{"\u202e", "\x00"}, false},
		"/garbage": {"text/html", bytes.Repeat([]byte("<\xff<<!--\x00"), 5000), []string{"[data from HOST]"}, nil, false},
		"/deep":    {"text/html", []byte(strings.Repeat("<div>", 100_000) + "deep text"), []string{"deep text"}, nil, false},
		"/binary":  {"application/zip", []byte("PK\x03\x04\x00\x00"), []string{"It is no text: application/zip"}, nil, true},
		"/empty":   {"text/html", nil, []string{"[data from HOST]"}, nil, false},
		"/picture": {"image/png", picture.Bytes(), []string{"image/png 3×2"}, nil, false},
		"/absent":  {"text/plain", []byte("nothing here"), []string{"HTTP 404", "nothing here"}, nil, true},
	}
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		p := pages[r.URL.Path]
		w.Header().Set("Content-Type", p.kind)
		if r.URL.Path == "/absent" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(p.body)
	})
	for path, p := range pages {
		r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host + path})
		if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || r.GetIsError() != p.fail {
			t.Errorf("%s: %v", path, r)
		}
		for _, want := range p.want {
			if want = strings.ReplaceAll(want, "HOST", host); !strings.Contains(r.GetResult(), want) {
				t.Errorf("%s lacks %q: %q", path, want, r.GetResult()[:min(len(r.GetResult()), 600)])
			}
		}
		for _, not := range p.not {
			if strings.Contains(r.GetResult(), not) {
				t.Errorf("%s has %q: %q", path, not, r.GetResult())
			}
		}
		if (len(r.GetMedia()) == 1) != (path == "/picture") {
			t.Errorf("%s: %d media", path, len(r.GetMedia()))
		}
	}
}

func TestWebFetchReadsLongPagesByParts(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d é\n", i)
	}
	host := site(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text.String()))
	})
	var read strings.Builder
	for part := 1; ; part++ {
		r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host, "part": part})
		head, body, _ := strings.Cut(r.GetResult(), "\n\n")
		if r.GetIsError() || !strings.Contains(head, fmt.Sprintf("Part %d of 9", part)) {
			t.Fatalf("part %d: %s", part, head)
		}
		body, note, more := strings.Cut(body, "\n\n[")
		read.WriteString(body + "\n")
		if !more {
			break
		}
		if want := fmt.Sprintf("The page continues in part %d.]", part+1); note != want {
			t.Fatalf("%q, want %q", note, want)
		}
	}
	if read.String() != text.String() {
		t.Errorf("%d bytes of %d were read", read.Len(), text.Len())
	}
	if r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host, "part": 10}); !r.GetIsError() || !strings.Contains(r.GetResult(), "It has 9 parts.") {
		t.Error(r.GetResult())
	}
}

// TestWebBodiesAreBounded: an endless page ends after 5 MB, and so does a small one that unpacks
// to more.
func TestWebBodiesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	stopped := make(chan struct{}, 2)
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		kind := "text/plain"
		if r.URL.Path == "/image" {
			kind = "image/png"
			w.Header().Set("Content-Length", "200000000")
		}
		w.Header().Set("Content-Type", kind)
		chunk := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("endless "), 8<<10)...)
		for {
			if _, err := w.Write(chunk); err != nil {
				stopped <- struct{}{}
				return
			}
		}
	})
	r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host})
	if r.GetIsError() || !strings.Contains(r.GetResult(), "longer than 5242880 bytes") || !strings.Contains(r.GetResult(), "Part 1 of 1") {
		t.Errorf("%.300s", r.GetResult())
	}
	if r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host + "/image"}); !r.GetIsError() || !strings.Contains(r.GetResult(), "larger than 5242880 bytes") {
		t.Errorf("%.300s", r.GetResult())
	}
	<-stopped
	<-stopped
}

// TestWebReachesNothingPrivate: an address that is not public is reached only if a local person or
// the operator names its host, whatever redirects lead to.
func TestWebReachesNothingPrivate(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	secret := site(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	address := strings.Replace(secret, "localhost", "127.0.0.1", 1)
	open := site(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.URL.Query().Get("to")+"/", http.StatusFound)
	})
	tenant := func(hosts ...string) *harnessv1.WebCall { c := local(hosts...); c.Local = false; return c }
	anyHost := local(open)
	anyHost.AnyHost = true
	h := newHost(t, Config{})
	for name, c := range map[string]struct {
		call *harnessv1.WebCall
		url  string
		want string
	}{
		"a name that the file of a tenant names":     {tenant(secret), "http://" + secret, "only the ports 80 and 443"},
		"a name at a port of the web":                {tenant("localhost"), "http://localhost/", "no public address"},
		"an address that the file of a tenant names": {tenant("127.0.0.1", address), "http://127.0.0.1/", "no public address"},
		"a name that no file names":                  {local(), "http://" + secret, "only the ports 80 and 443"},
		"a mapped address":                           {local(), "http://[::ffff:127.0.0.1]/", "no public address"},
		"metadata of a cloud":                        {local(), "http://169.254.169.254/latest", "no public address"},
		"an address in another notation":             {local(), "http://2130706433/", "no name of a host"},
		"a redirect to a name":                       {anyHost, "http://" + open + "/?to=" + secret, "only the ports 80 and 443"},
		"a redirect to an address":                   {anyHost, "http://" + open + "/?to=127.0.0.1", "no public address"},
		"a redirect to a host that was not approved": {local(open), "http://" + open + "/?to=" + secret, "Request that address if you want it"},
		"a file":                                      {local(open), "file:///etc/passwd", "must begin with http"},
		"an address with credentials":                 {local(open), "http://user:pass@" + open, "no user and no password"},
		"a tool that the agent does not have":         {&harnessv1.WebCall{Web: &harnessv1.Web{Request: true}}, "http://" + open, "does not have the tool"},
		"a call without settings, of an older worker": {nil, "http://" + open, "does not have the tool"},
	} {
		r := h.webCall(webtool.Fetch, c.call, map[string]any{"url": c.url})
		if !strings.Contains(r.GetResult(), c.want) {
			t.Errorf("%s: %q", name, r.GetResult())
		}
	}
	if reached.Load() != 0 {
		t.Fatalf("reached %d times", reached.Load())
	}
	for name, call := range map[string]*harnessv1.WebCall{"a local person by name": local(secret), "a local person by address": local(address)} {
		url := "http://" + call.GetWeb().GetAllow()[0]
		if r := h.webCall(webtool.Fetch, call, map[string]any{"url": url}); r.GetIsError() {
			t.Errorf("%s: %v", name, r)
		}
	}
	operated := newHost(t, Config{SandboxPrivateHosts: []string{secret}})
	if r := operated.webCall(webtool.Fetch, tenant(), map[string]any{"url": "http://" + secret}); r.GetIsError() {
		t.Errorf("a host of the operator: %v", r)
	}
	if reached.Load() != 3 {
		t.Errorf("reached %d times", reached.Load())
	}
}

func TestWebRefusesBadCertificatesAndEndlessRedirects(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	t.Cleanup(secure.Close)
	host := strings.Replace(strings.TrimPrefix(secure.URL, "https://"), "127.0.0.1", "localhost", 1)
	for _, tool := range []string{webtool.Fetch, webtool.Request} {
		arguments := map[string]any{"url": "https://" + host}
		if tool == webtool.Request {
			arguments["method"] = "POST"
		}
		r := h.webCall(tool, local(host), arguments)
		if !r.GetIsError() || !strings.Contains(r.GetResult(), "certificate of "+host+" is not valid") {
			t.Errorf("%s: %v", tool, r)
		}
	}
	var requests atomic.Int32
	host = site(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	r := h.webCall(webtool.Fetch, local(host), map[string]any{"url": "http://" + host})
	if !r.GetIsError() || !strings.Contains(r.GetResult(), "more than 5 redirects") || requests.Load() != 6 {
		t.Errorf("%v after %d requests", r, requests.Load())
	}
}

// TestWebCredentialsGoToTheirHostAlone: neither a redirect nor a server that repeats them shows them.
func TestWebCredentialsGoToTheirHostAlone(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	other := site(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Api-Key") + r.Header.Get("Authorization"))
		fmt.Fprint(w, "other")
	})
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://"+other, http.StatusFound)
			return
		}
		fmt.Fprintf(w, "you sent %s and %s", r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
	})
	h := newHost(t, Config{Environment: func(string) []string { return []string{"WEB_TOKEN=very-secret-token"} }})
	call := local(host, other)
	call.Web.Credentials = []*harnessv1.WebCredential{{Host: host, Headers: map[string]string{"x-api-key": "${WEB_TOKEN}", "Authorization": "Bearer ${WEB_TOKEN}"}}}
	for _, tool := range []string{webtool.Fetch, webtool.Request} {
		r := h.webCall(tool, call, map[string]any{"url": "http://" + host + "/echo"})
		if !strings.Contains(r.GetResult(), "you sent [credential] and [credential]") || strings.Contains(r.GetResult(), "very-secret") {
			t.Errorf("%s: %s", tool, r.GetResult())
		}
		if r := h.webCall(tool, call, map[string]any{"url": "http://" + host + "/away"}); !strings.Contains(r.GetResult(), "other") || got.Load() != "" {
			t.Errorf("%s: %s, another host got %q", tool, r.GetResult(), got.Load())
		}
		if r := h.webCall(tool, call, map[string]any{"url": "http://" + other}); r.GetIsError() || got.Load() != "" {
			t.Errorf("%s: another host got %q", tool, got.Load())
		}
	}
	call.Web.Credentials[0].Headers = map[string]string{"Authorization": "Bearer ${NOT_SET_ANYWHERE}"}
	if r := h.webCall(webtool.Fetch, call, map[string]any{"url": "http://" + host}); !r.GetIsError() || !strings.Contains(r.GetResult(), "NOT_SET_ANYWHERE is not set") {
		t.Error(r.GetResult())
	}
}

// TestTokenHoldersGetNoVariablesOfTheHost: their hosts would receive them.
func TestTokenHoldersGetNoVariablesOfTheHost(t *testing.T) {
	t.Setenv("OPERATORS_SECRET", "very-secret-token")
	host := site(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	h := newHost(t, Config{SandboxPrivateHosts: []string{host}})
	call := local(host)
	call.Web.Credentials = []*harnessv1.WebCredential{{Host: host, Headers: map[string]string{"Authorization": "${OPERATORS_SECRET}"}}}
	if r := h.webCall(webtool.Fetch, call, map[string]any{"url": "http://" + host}); !strings.Contains(r.GetResult(), "[credential]") {
		t.Errorf("a local person: %v", r)
	}
	call.Local = false
	if r := h.webCall(webtool.Fetch, call, map[string]any{"url": "http://" + host}); !r.GetIsError() || !strings.Contains(r.GetResult(), "is not set") {
		t.Errorf("the holder of a token: %v", r)
	}
}

// TestWritingRequestsAreSentOnce: one whose answer is lost is unknown and not sent again, also by
// a host that starts later.
func TestWritingRequestsAreSentOnce(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case posts.Add(1) == 1 || r.URL.Path != "/lost":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "made")
			return
		default:
			panic(http.ErrAbortHandler)
		}
	})
	h := newHost(t, Config{})
	post := func(path string) *harnessv1.ExecuteToolRequest {
		req := h.request(webtool.Request, "", map[string]any{"url": "http://" + host + path, "method": "POST", "body": "x"})
		req.Web = local(host)
		return req
	}
	req := post("/made")
	for range 2 {
		if r := h.execute(req); r.GetIsError() || !strings.Contains(r.GetResult(), "status_code: 201") || !strings.Contains(r.GetResult(), "made") {
			t.Errorf("%v", r)
		}
	}
	if posts.Load() != 1 {
		t.Errorf("%d requests", posts.Load())
	}
	req = post("/lost")
	for range 2 {
		if r := h.execute(req); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			t.Errorf("%v", r)
		}
	}
	if posts.Load() != 2 {
		t.Errorf("%d requests", posts.Load())
	}
	if r := h.execute(post("/moved")); !strings.Contains(r.GetResult(), "status_code: 307") || posts.Load() != 2 {
		t.Errorf("%v, %d requests", r, posts.Load())
	}
	if r := h.webCall(webtool.Request, local(host), map[string]any{"url": "http://" + host, "headers": map[string]string{"Host": "other"}}); !r.GetIsError() {
		t.Errorf("%v", r)
	}
}

func TestCalculate(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for expression, want := range map[string]string{
		"0.1 + 0.2": "0.3", "2^100": "1267650600228229401496703205376", "1/0": "The expression has no value: at ",
		strings.Repeat("(", 1_000_000): "more than the limit of 4096", "\xff1": "The expression has no value",
	} {
		begin := time.Now()
		r := h.webCall(webtool.Calculate, local(), map[string]any{"expression": expression})
		if !strings.Contains(r.GetResult(), want) || time.Since(begin) > 5*time.Second {
			t.Errorf("%.40q: %.200s", expression, r.GetResult())
		}
	}
	if r := h.webCall(webtool.Calculate, &harnessv1.WebCall{Web: &harnessv1.Web{Fetch: true}}, map[string]any{"expression": "1"}); !r.GetIsError() {
		t.Errorf("an agent that does not have it: %v", r)
	}
}
