package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func extended(t *testing.T, file string) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Default().Extend("own.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newHelloGateway(t *testing.T, prefix string, messages bool) *gateway {
	s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
	return newGateway(t, s, prefix, messages)
}

func TestProviderOfFile(t *testing.T) {
	g := newHelloGateway(t, "/a/b", false)
	c := extended(t, fmt.Sprintf(`providers:
  - name: corp
    aliases: [c.o]
    wire: chat
    address: %s/${CORP_PATH}/b
    key_variable: CORP_KEY
    header: x-corp-key
    headers: {x-team: "team-${TEAM}"}
`, g.server.URL))
	env := environment("CORP_PATH", "a", "CORP_KEY", "sk-corp", "TEAM", "t1")
	for _, ref := range []string{"corp:m", "c.o:m"} {
		p, name, err := provider.OpenWith(c, ref, env)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := complete(t, p, name); err != nil {
			t.Fatal(err)
		}
		if at, header := g.last(t); at != "/a/b/chat/completions" || header.Get("X-Corp-Key") != "sk-corp" || header.Get("X-Team") != "team-t1" || header.Get("Authorization") != "" {
			t.Errorf("%s: %v arrived at %s", ref, header, at)
		}
	}
	for missing, says := range map[string]string{
		"CORP_PATH": "CORP_PATH is not set: set it, the address of corp contains it", "CORP_KEY": "CORP_KEY is not set: set it to the key of corp",
		"TEAM": "TEAM is not set, or contains a line break: the header X-Team of corp contains it",
	} {
		_, _, err := provider.OpenWith(c, "corp:m", func(name string) string {
			if name == missing {
				return ""
			}
			return env(name)
		})
		if err == nil || err.Error() != says {
			t.Errorf("without %s: error %v, want %q", missing, err, says)
		}
	}
}

func TestFileReplacesProvider(t *testing.T) {
	g := newHelloGateway(t, "", true)
	c := extended(t, "providers: [{name: deepseek, wire: messages, address: '"+g.server.URL+"', key_variable: MY_KEY, header: Authorization}]")
	p, name, err := provider.OpenWith(c, "deepseek:m", environment("MY_KEY", "sk-1", "DEEPSEEK_BASE_URL", "http://127.0.0.1:1/v1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := complete(t, p, name); err != nil {
		t.Fatal(err)
	}
	if at, header := g.last(t); at != "/v1/messages" || header.Get("Authorization") != "Bearer sk-1" || header.Get("X-Api-Key") != "" {
		t.Errorf("%v arrived at %s", header, at)
	}
}

const tokenFile = `providers:
  - {name: corp, wire: %s, address: '%s', key_variable: CORP_KEY, header: %s, token_command: [/bin/sh, -c, %q]}
`

func TestTokenCommand(t *testing.T) {
	for _, c := range []struct{ wire, header, sent, want string }{
		{"chat", "Authorization", "Authorization", "Bearer "}, {"[responses, chat]", "api-key", "Api-Key", ""},
		{"messages", "x-api-key", "X-Api-Key", ""}, {"messages", "Authorization", "Authorization", "Bearer "},
	} {
		count := filepath.Join(t.TempDir(), "count")
		g := newHelloGateway(t, "", c.wire == "messages")
		script := "printf x >>" + count + "; echo token-$(wc -c <" + count + " | tr -d ' ')"
		file := extended(t, fmt.Sprintf(tokenFile, c.wire, g.address(), c.header, script))
		p, name, err := provider.OpenWith(file, "corp:m", environment())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := complete(t, p, name); err != nil {
				t.Fatal(err)
			}
			if _, header := g.last(t); header.Get(c.sent) != c.want+"token-1" {
				t.Errorf("%s is sent as %v", c.sent, header)
			}
		}
		if p, name, err = provider.OpenWith(file, "corp:m", environment("CORP_KEY", "sk-1")); err != nil {
			t.Fatal(err)
		}
		if _, err := complete(t, p, name); err != nil {
			t.Fatal(err)
		}
		if _, header := g.last(t); header.Get(c.sent) != c.want+"sk-1" {
			t.Errorf("the key of the variable is not preferred: %v", header)
		}
		if err := p.(interface{ Close() error }).Close(); err != nil {
			t.Error(err)
		}
	}
}

// A token that the provider refuses is replaced within the try.
func TestRefusedToken(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	hello := newHelloGateway(t, "", false)
	valid, requests := "Bearer token-1", 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.Header.Get("Authorization") != valid {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"bad token %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		hello.server.Config.Handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	script := "printf x >>" + count + "; echo token-$(wc -c <" + count + " | tr -d ' ')"
	p, name, err := provider.OpenWith(extended(t, fmt.Sprintf(tokenFile, "chat", s.URL, "Authorization", script)), "corp:m", environment())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := complete(t, p, name); err != nil || requests != 1 {
		t.Fatalf("%d requests, %v", requests, err)
	}
	valid = "Bearer token-2"
	if _, err := complete(t, p, name); err != nil || requests != 3 {
		t.Errorf("%d requests, %v; want the second of this try to succeed", requests, err)
	}
	valid = "Bearer never"
	_, err = complete(t, p, name)
	if failed := model.AsError(err); failed.Status != http.StatusUnauthorized || requests != 5 || strings.Contains(failed.Message, "token-") ||
		!strings.Contains(failed.Message, "the token command of corp") {
		t.Errorf("%d requests, %v; want one more token, and an error without it", requests, err)
	}
	if _, err = complete(t, p, name); requests != 6 {
		t.Errorf("%d requests, %v; want one, because the token was new", requests, err)
	}
}

func TestFailedTokenCommand(t *testing.T) {
	c := extended(t, fmt.Sprintf(tokenFile, "chat", "http://127.0.0.1:9", "Authorization", "echo a; echo b"))
	p, name, err := provider.OpenWith(c, "corp:m", environment())
	if err != nil {
		t.Fatal(err)
	}
	_, err = complete(t, p, name)
	if failed := model.AsError(err); failed.Retryable || !strings.HasPrefix(failed.Message, "the token command of corp, /bin/sh, printed more than one line") {
		t.Errorf("error %v", err)
	}
	missing := extended(t, "providers: [{name: corp, wire: chat, address: http://h/v1, token_command: [no-such-program]}]")
	if _, _, err := provider.OpenWith(missing, "corp:m", environment()); err == nil || !strings.Contains(err.Error(), `the token command of corp: "no-such-program" is not an executable file`) {
		t.Errorf("error %v", err)
	}
}

// Values of variables in headers, and tokens, are in no error.
func TestSecrets(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"who is %s, %s?"}}`, r.Header.Get("X-Second"), r.Header.Get("Authorization"))
	}))
	defer s.Close()
	c := extended(t, "providers: [{name: corp, wire: chat, address: '"+s.URL+"', headers: {x-second: 'a ${SECOND}'}, token_command: [/bin/sh, -c, echo sk-token-0123456789]}]")
	p, name, err := provider.OpenWith(c, "corp:m", environment("SECOND", "sk-second-0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = complete(t, p, name); err == nil || strings.Contains(err.Error(), "sk-") || !strings.Contains(err.Error(), "who is a [key], Bearer [key]?") {
		t.Errorf("error %v", err)
	}
}

func providerNamed(t *testing.T, name string) *catalogue.Provider {
	t.Helper()
	p := catalogue.Default().Provider(name)
	if p == nil {
		t.Fatalf("no provider %s", name)
	}
	return p
}
