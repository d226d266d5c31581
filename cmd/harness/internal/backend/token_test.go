package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// TestTokenIsFoundForAnAddress: the file of --token-file first, else the noted key, which
// goes to the noted address only.
func TestTokenIsFoundForAnAddress(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": dir}[name] }
	notes, err := localkey.UserNotes(env)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gateway.key")
	key, _, err := localkey.Ensure(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := notes.Put("127.0.0.1:7447", file); err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(dir, "token")
	if err := os.WriteFile(given, []byte("a-token-of-the-user\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts        Options
		target      string
		plain       bool
		address     string
		token, fail string
	}{
		"noted":            {Options{Env: env}, "127.0.0.1:7447", true, "127.0.0.1:7447", key, ""},
		"by name":          {Options{Env: env}, "localhost:7447", true, "127.0.0.1:7447", key, ""},
		"by name with TLS": {Options{Env: env}, "localhost:7447", false, "localhost:7447", key, ""},
		"another port":     {Options{Env: env}, "127.0.0.1:7448", true, "127.0.0.1:7448", "", ""},
		"another machine":  {Options{Env: env}, "10.0.0.1:7447", true, "10.0.0.1:7447", "", ""},
		"no home":          {Options{Env: func(string) string { return "" }}, "127.0.0.1:7447", true, "127.0.0.1:7447", "", ""},
		"a file":           {Options{Env: env, TokenFile: given}, "127.0.0.1:7447", true, "127.0.0.1:7447", "a-token-of-the-user", ""},
		"a missing file":   {Options{Env: env, TokenFile: dir + "/none"}, "127.0.0.1:7447", true, "", "", "--token-file: "},
		"in clear text":    {Options{Env: env, TokenFile: given}, "10.0.0.1:7447", true, "", "", "in clear text"},
	} {
		address, credential, err := findToken(c.opts, c.target, c.plain)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: %v, want %q", name, err, c.fail)
			}
			continue
		}
		token := ""
		if err == nil && credential != nil {
			var header map[string]string
			header, err = credential.GetRequestMetadata(t.Context())
			token = strings.TrimPrefix(header["authorization"], "Bearer ")
		}
		if err != nil || address != c.address || token != c.token {
			t.Errorf("%s: %s, %s, %v", name, address, token, err)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := findToken(Options{Env: env}, "127.0.0.1:7447", true); err == nil || !strings.Contains(err.Error(), "--server: ") || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("a key that others can read: %v", err)
	}
}

// TestKeyIsFoundOnceTheGatewayHasStarted, by address and not by name.
func TestKeyIsFoundOnceTheGatewayHasStarted(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": dir}[name] }
	for _, target := range []string{"127.0.0.1:7447", "localhost:7447"} {
		_, credential, err := findToken(Options{Env: env}, target, true)
		if err != nil {
			t.Fatal(err)
		}
		if header, err := credential.GetRequestMetadata(t.Context()); err != nil || len(header) != 0 {
			t.Errorf("%v, %v", header, err)
		}
		notes, err := localkey.UserNotes(env)
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := localkey.Ensure(filepath.Join(dir, "gateway.key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := notes.Put("127.0.0.1:7447", filepath.Join(dir, "gateway.key")); err != nil {
			t.Fatal(err)
		}
		header, err := credential.GetRequestMetadata(t.Context())
		found := header["authorization"] == "Bearer "+key
		if err != nil || found != (target == "127.0.0.1:7447") {
			t.Errorf("%s: found %v, %v", target, found, err)
		}
		if err := notes.Remove("127.0.0.1:7447"); err != nil {
			t.Fatal(err)
		}
	}
}
