package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// withoutBus fails the test if a NATS server listens at the default address, which would be
// examined instead.
func withoutBus(t *testing.T) {
	t.Helper()
	if conn, err := net.Dial("tcp", "127.0.0.1:4222"); err == nil {
		_ = conn.Close()
		t.Fatal("a server listens at 127.0.0.1:4222")
	}
}

func TestDoctorOfALaptop(t *testing.T) {
	withoutBus(t)
	home := t.TempDir()
	doctor := func(env map[string]string, args ...string) (saidByProgram, examination) {
		t.Helper()
		env["HOME"] = home
		text := call(t, env, "", append([]string{"doctor"}, args...)...)
		got := call(t, env, "", append([]string{"doctor", "--output", "json"}, args...)...)
		var e examination
		if err := json.Unmarshal([]byte(got.out), &e); err != nil || text.code != got.code || (got.code == 0) != (len(e.Problems) == 0) || text.err != "" {
			t.Fatalf("%v: %+v %+v", err, text, got)
		}
		for _, problem := range e.Problems {
			if !strings.Contains(text.out, "problem:  "+problem+"\n") {
				t.Errorf("%q is not in\n%s", problem, text.out)
			}
		}
		return text, e
	}
	models := modeltest.NewServer(t)
	models.Key = "sk-secret-of-a-key-0123456789"
	with := func(more ...string) map[string]string {
		env := map[string]string{"OPENAI_API_KEY": models.Key, "OPENAI_BASE_URL": models.BaseURL()}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	text, e := doctor(map[string]string{"ANTHROPIC_API_KEY": models.Key, "ANTHROPIC_BASE_URL": models.MessagesURL()})
	if text.code != 0 || e.Model != "anthropic:test-model" || len(e.Keys) != 1 || e.Keys[0].Provider != "anthropic" || e.Data.Exists || e.Data.FreeBytes == 0 || e.Version == "" {
		t.Errorf("%+v", e)
	}
	if strings.Contains(text.out, "secret") || !strings.Contains(text.out, "anthropic: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL set\n") || !strings.Contains(text.out, home+"/.local/share/harness: not there yet") {
		t.Errorf("%s", text.out)
	}
	if _, err := os.Stat(filepath.Join(home, ".local")); err == nil {
		t.Error("the doctor made the data directory")
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"no key":          {map[string]string{}, nil, "no model: name one"},
		"a bad key":       {map[string]string{"OPENAI_API_KEY": "a\nb"}, nil, "OPENAI_API_KEY contains a line break"},
		"a missing key":   {map[string]string{"HARNESS_MODEL": "groq:x"}, nil, "GROQ_API_KEY is not set"},
		"a wrong key":     {with("OPENAI_API_KEY", "sk-of-another-provider-987"), nil, "OPENAI_API_KEY"},
		"no server":       {with("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"), nil, "127.0.0.1:1"},
		"data in a file":  {with(), []string{"--data", os.Args[0]}, "is a file: use another --data"},
		"unknown default": {map[string]string{"HARNESS_MODEL": "nope:x"}, nil, "nope"},
	} {
		if _, e := doctor(c.env, c.args...); len(e.Problems) == 0 || !strings.Contains(strings.Join(e.Problems, "\n"), c.want) {
			t.Errorf("%s: %q, want %q", name, e.Problems, c.want)
		}
	}
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "x"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, e := doctor(with(), "--data", data); e.Model != "openai:test-model" || e.Data.Bytes != 3<<20 || e.Data.InUse || !strings.Contains(text.out, "3.0 MiB, not in use") {
		t.Errorf("%+v", e)
	}
	if left, _ := os.ReadDir(data); len(left) != 1 {
		t.Errorf("left in the data directory: %v", left)
	}
	// A bus that is named is examined.
	if got := call(t, nil, "", "doctor", "--nats", "nats://127.0.0.1:1", "--nats-wait", "1ms"); got.code != 1 || strings.Contains(got.out, "version") {
		t.Errorf("%+v", got)
	}
}
