package doctor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/doctor"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestDoctorOfALaptop(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	harnesstest.WithoutBus(t)
	home := t.TempDir()
	doctor := func(env map[string]string, args ...string) (harnesstest.Outcome, doctor.Examination) {
		t.Helper()
		env["HOME"] = home
		text := harnesstest.Call(t, env, "", append([]string{"doctor"}, args...)...)
		got := harnesstest.Call(t, env, "", append([]string{"doctor", "--output", "json"}, args...)...)
		var e doctor.Examination
		if err := json.Unmarshal([]byte(got.Out), &e); err != nil || text.Code != got.Code || (got.Code == 0) != (len(e.Problems) == 0) || text.Err != "" {
			t.Fatalf("%v: %+v %+v", err, text, got)
		}
		for _, problem := range e.Problems {
			if !strings.Contains(text.Out, "problem:  "+problem+"\n") {
				t.Errorf("%q is not in\n%s", problem, text.Out)
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
	if text.Code != 0 || e.Model != "anthropic:test-model" || len(e.Keys) != 1 || e.Keys[0].Provider != "anthropic" || e.Data.Exists || e.Data.FreeBytes == 0 || e.Version == "" {
		t.Errorf("%+v", e)
	}
	if strings.Contains(text.Out, "secret") || !strings.Contains(text.Out, "anthropic: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL set\n") || !strings.Contains(text.Out, home+"/.local/share/harness: not there yet") {
		t.Errorf("%s", text.Out)
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
	if text, e := doctor(with(), "--data", data); e.Model != "openai:test-model" || e.Data.Bytes != 3<<20 || e.Data.InUse || !strings.Contains(text.Out, "3.0 MiB, not in use") {
		t.Errorf("%+v", e)
	}
	if left, _ := os.ReadDir(data); len(left) != 1 {
		t.Errorf("left in the data directory: %v", left)
	}
	// A bus that is named is examined.
	if got := harnesstest.Call(t, nil, "", "doctor", "--nats", "nats://127.0.0.1:1", "--nats-wait", "1ms"); got.Code != 1 || strings.Contains(got.Out, "version") {
		t.Errorf("%+v", got)
	}
}
