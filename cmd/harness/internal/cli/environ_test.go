package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/cli"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
)

// environment runs the program with variables alone.
func environment(t *testing.T, pairs []string, args ...string) (code int, said string) {
	t.Helper()
	pairs = append(pairs, "HOME="+t.TempDir(), "PATH=/bin")
	var out, errs bytes.Buffer
	code = cli.Run(args, console.Process{In: strings.NewReader(""), Out: &out, Err: &errs, Signals: make(chan os.Signal), Environ: pairs}, func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	})
	return code, errs.String()
}

// TestAMistakeInTheEnvironmentIsNamedByItsVariable, in one line; a flag that was given
// is named alone.
func TestAMistakeInTheEnvironmentIsNamedByItsVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pair  string
		args  []string
		words []string
	}{
		{"HARNESS_SYNC=sometimes", []string{"serve"}, []string{"environment HARNESS_SYNC: --sync must be one of", "sometimes"}},
		{"HARNESS_MAX_TURNS=many", []string{"run", "x"}, []string{"environment HARNESS_MAX_TURNS: --max-turns"}},
		{"HARNESS_LISTEN=here", []string{"serve"}, []string{"environment HARNESS_LISTEN: --listen", "HOST:PORT"}},
		{"HARNESS_TAKEOVER=1ms", []string{"serve"}, []string{"environment HARNESS_TAKEOVER: --takeover", "at least 1s"}},
		{"HARNESS_ROLES=turning", []string{"serve"}, []string{"environment HARNESS_ROLES: --roles", "turning"}},
		{"HARNESS_TLS_CERT=nowhere", []string{"serve"}, []string{"environment HARNESS_TLS_CERT: --tls-cert and --tls-key must be set together"}},
		{"HARNESS_TLS=perhaps", []string{"list"}, []string{"environment HARNESS_TLS: --tls"}},
		{"HARNESS_TOKENS=nowhere", []string{"serve"}, []string{"environment HARNESS_TOKENS: --tokens", "nowhere"}},
		{"HARNESS_NATS_CREDS=nowhere", []string{"doctor"}, []string{"environment HARNESS_NATS_CREDS: --nats-creds", "nowhere"}},
		{"HARNESS_NATS=nats://me:s3cret@", []string{"doctor"}, []string{"environment HARNESS_NATS: --nats", "names no host"}},
		{"HARNESS_SYNC=sometimes", []string{"serve", "--sync", "never"}, []string{"harness: --sync must be one of", "never"}},
	} {
		code, said := environment(t, []string{c.pair}, c.args...)
		if code != 1 || strings.Count(said, "\n") != 1 || strings.Contains(said, "s3cret") {
			t.Errorf("%s: %d %q", c.pair, code, said)
		}
		for _, w := range c.words {
			if !strings.Contains(said, w) {
				t.Errorf("%s: %q does not say %q", c.pair, said, w)
			}
		}
	}
}

// TestNoDocumentedVariableIsWarnedOf: each that the documentation names is known.
func TestNoDocumentedVariableIsWarnedOf(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	var pairs []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bHARNESS_[A-Z0-9_]*[A-Z0-9]\b`).FindAllString(string(text), -1) {
			if name != "HARNESS_SINC" { // the example of a mistake
				pairs = append(pairs, name+"=")
			}
		}
	}
	if len(pairs) < 10 {
		t.Fatalf("only %d variables are found", len(pairs))
	}
	if _, said := environment(t, pairs, "version"); said != "" {
		t.Error(said)
	}
}

// TestAVariableThatNoFlagHasIsWarnedOf, with the one that is probably meant; what is
// not for this program is left alone.
func TestAVariableThatNoFlagHasIsWarnedOf(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]string{
		"HARNESS_SINC=always":                         "environment HARNESS_SINC: unknown variable; did you mean HARNESS_SYNC?",
		"HARNESS_TOKENFILE=x":                         "did you mean HARNESS_TOKEN_FILE?",
		"HARNESS_MAXTURNS=3":                          "did you mean HARNESS_MAX_TURNS?",
		"HARNESS_SOMETHING_ELSE=1":                    "environment HARNESS_SOMETHING_ELSE: unknown variable, ignored",
		"HARNESS_MAX_TURNS=3":                         "",
		"HARNESS_FAILPOINT=":                          "",
		"HARNESSMESH=1":                               "",
		"MY_HARNESS_SINC=1":                           "",
		"HARNESS_GATEWAY_SERVICE_HOST=10.0.0.1":       "",
		"HARNESS_GATEWAY_SERVICE_PORT_GRPC=7447":      "",
		"HARNESS_GATEWAY_PORT=tcp://10.0.0.1:7447":    "",
		"HARNESS_GATEWAY_PORT_7447_TCP_ADDR=10.0.0.1": "",
	} {
		code, said := environment(t, []string{pair}, "version")
		if code != 0 || strings.Count(said, "\n") > 1 || !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%s: %d %q", pair, code, said)
		}
	}
}
