package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestFlagsOfTheKeyThatContradictAreRefused before anything starts.
func TestFlagsOfTheKeyThatContradictAreRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--key-file and --open-loopback are mutually exclusive", []string{"--key-file", "key", "--open-loopback"}},
		{"--allow-target: only for the gateway", []string{"--allow-target", "h:1", "--roles", "turn", "--nats", "nats://127.0.0.1:1"}},
		{"--token-sandbox-least: only for the gateway", []string{"--token-sandbox-least", "full", "--roles", "turn", "--nats", "nats://127.0.0.1:1"}},
		{"--token-sandbox-least: missing --tokens", []string{"--token-sandbox-least", "off"}},
		{`--allow-target: "h" is not HOST:PORT`, []string{"--allow-target", "h"}},
		{"--target-ca: ", []string{"--target-ca", "nowhere"}},
		{"--key-file: only for the gateway", []string{"--key-file", "key", "--roles", "turn", "--nats", "nats://127.0.0.1:1"}},
		{"--mesh-key and --open-loopback are mutually exclusive", []string{"--mesh-key", "key", "--open-loopback"}},
		{"--mesh-key: roles present certificates", []string{"--mesh-key", "key", "--tls-ca", "main_test.go", "--tls-cert", "c", "--tls-key", "k"}},
	} {
		got := harnesstest.Call(t, nil, "", append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, c.args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, c.want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory is made")
	}
}

// TestPagesOfAllOriginsNeedTokens: neither the key of a gateway on loopback nor no
// requirement at all is enough. With tokens, and for named origins, the start goes past the
// flag.
func TestPagesOfAllOriginsNeedTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef1 * roots=/srv\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		refused bool
		args    []string
	}{
		{true, []string{"--cors", "*"}},
		{true, []string{"--cors", "https://app.example", "--cors", "*"}},
		{true, []string{"--cors", "*", "--open-loopback"}},
		{true, []string{"--cors", "*", "--insecure", "--listen", "0.0.0.0:0"}},
		{false, []string{"--cors", "*", "--tokens", tokens}},
		{false, []string{"--cors", "https://app.example"}},
	} {
		data := filepath.Join(dir, "data")
		// Another contradiction ends a start that this one does not.
		got := harnesstest.Call(t, nil, "", append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--mesh-key", "k", "--tls-ca", "none"}, c.args...)...)
		refused := strings.Contains(got.Err, "--cors: pages of all origins may call a gateway with --tokens only")
		if got.Code != 1 || refused != c.refused || refused && strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

// TestStartNamesTokensWithoutRoots by line, and no token.
func TestStartNamesTokensWithoutRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef1\n# for a team\n0123456789abcdef2 * roots=/srv\n0123456789abcdef3 a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The contradiction ends the start after the file is read.
	got := harnesstest.Call(t, nil, "", "serve", "--data", filepath.Join(dir, "data"), "--tokens", tokens, "--key-file", "key", "--open-loopback")
	if !strings.Contains(got.Err, "without roots=") || !strings.Contains(got.Err, "line 1, 4 (") || strings.Contains(got.Err, "0123456789") {
		t.Errorf("%+v", got)
	}
}
