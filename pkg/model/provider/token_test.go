package provider

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newTestSource returns a source whose command is a script of the shell.
func newTestSource(script string, args ...string) (*tokenSource, *clock) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	s := newTokenSource("corp", append([]string{"/bin/sh", "-c", script, "sh"}, args...))
	s.now = c.time
	return s, c
}

const (
	printArg = `printf %s "$1"`
	// countRuns prints a new token each time, and "$2".
	countRuns = `printf x >>"$1"; echo "token-$(wc -c <"$1" | tr -d ' ') $2"`
)

func TestTokenCommand(t *testing.T) {
	for output, want := range map[string]string{
		"abc": "abc", "abc\n": "abc", "abc\r\n": "abc", " abc \n": "abc", "abc 1700000600\n": "abc", "a\t2023-11-14T22:00:00Z": "a",
	} {
		s, _ := newTestSource(printArg, output)
		if token, fresh, err := s.get(t.Context()); err != nil || token != want || !fresh {
			t.Errorf("%q: token %q, fresh %v, %v", output, token, fresh, err)
		}
	}
}

func TestTokenCommandFails(t *testing.T) {
	for _, c := range []struct {
		script, arg, says string
		retryable         bool
	}{
		{"echo sk-secret; echo sk-secret >&2; exit 3", "", "failed: exit status 3", true},
		{"echo sk-secret; kill -9 $$", "", "failed: signal: killed", true},
		{"echo sk-secret; sleep 3600", "", "took longer than 50ms", true},
		{printArg, "", "printed no token", false},
		{printArg, "\n\n", "printed no token", false},
		{printArg, "sk-secret\nsk-secret\n", "printed more than one line", false},
		{printArg, "sk-secret 1 2", "printed more than a token and its expiry", false},
		{printArg, "sk-secret tomorrow", "printed an expiry that is neither", false},
		{printArg, "sk-secret\x01", "printed a token that is not plain text", false},
		{printArg, "sk-sécret", "printed a token that is not plain text", false},
		{printArg, strings.Repeat("x", maxToken+1), "printed more than 65536 bytes", false},
	} {
		s, _ := newTestSource(c.script, c.arg)
		if strings.Contains(c.script, "sleep") {
			s.timeout = 50 * time.Millisecond
		}
		_, _, err := s.get(t.Context())
		failed := model.AsError(err)
		if err == nil || !strings.HasPrefix(failed.Message, "the token command of corp, /bin/sh, "+c.says) || failed.Retryable != c.retryable {
			t.Errorf("%q, %.40q: error %v, want %q", c.script, c.arg, err, c.says)
			continue
		}
		if strings.Contains(failed.Message, "sk-") || strings.Contains(failed.Message, "\n") {
			t.Errorf("%q: error %.200q has output of the command, or several lines", c.arg, failed.Message)
		}
	}
}

// A child of the command that keeps the output open is killed, and the token is used.
func TestTokenCommandWithChild(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := newTestSource(`exec 3>"$1"; sleep 3600 & echo abc`, pipe)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if token, _, err := s.get(t.Context()); err != nil || token != "abc" {
			t.Errorf("token %q, %v", token, err)
		}
	}()
	child, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Close() }()
	<-done
	_ = child.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := child.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the child still runs: %v", err)
	}
}

func TestTokenIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	for _, c := range []struct {
		expiry  string
		advance time.Duration
		want    string
	}{
		{"", 0, "token-1"},
		{"", 4*time.Minute + 59*time.Second, "token-1"},
		{"", 5 * time.Minute, "token-2"},
		{"1700000600", 9*time.Minute - time.Second, "token-1"},
		{"1700000600", 9 * time.Minute, "token-2"},
		{"2023-11-14T22:23:20Z", 9*time.Minute - time.Second, "token-1"},
		{"2023-11-14T22:23:20Z", 9 * time.Minute, "token-2"},
		{"1700000000", 0, "token-2"}, // it expires immediately
	} {
		_ = os.Remove(file)
		s, clock := newTestSource(countRuns, file, c.expiry)
		if token, _, err := s.get(t.Context()); err != nil || token != "token-1" {
			t.Fatalf("the first token is %q, %v", token, err)
		}
		clock.advance(c.advance)
		if token, fresh, err := s.get(t.Context()); err != nil || token != c.want || fresh != (c.want == "token-2") {
			t.Errorf("expiry %q, after %v: token %q, fresh %v, %v; want %s", c.expiry, c.advance, token, fresh, err, c.want)
		}
	}
}

func TestTokenIsDropped(t *testing.T) {
	s, _ := newTestSource(countRuns, filepath.Join(t.TempDir(), "count"))
	for _, drop := range []string{"token-9", "token-1"} {
		if token, _, err := s.get(t.Context()); err != nil || token != "token-1" {
			t.Fatalf("token %q, %v", token, err)
		}
		s.drop(drop)
	}
	if token, _, err := s.get(t.Context()); err != nil || token != "token-2" {
		t.Errorf("after its token was dropped: %q, %v", token, err)
	}
}

func TestFailureIsNotKept(t *testing.T) {
	s, _ := newTestSource(`test -e "$1" || { touch "$1"; exit 1; }; echo abc`, filepath.Join(t.TempDir(), "failed"))
	if _, _, err := s.get(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if token, _, err := s.get(t.Context()); err != nil || token != "abc" {
		t.Errorf("token %q, %v", token, err)
	}
}

// Concurrent requests share one run of the command. When the request that started it
// ends, another one starts it again.
func TestTokenRunIsShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	s, _ := newTestSource(countRuns, file)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if token, _, err := s.get(t.Context()); err != nil || token != "token-1" {
				t.Errorf("token %q, %v", token, err)
			}
		})
	}
	group.Wait()
	if runs, err := os.ReadFile(file); err != nil || len(runs) != 1 {
		t.Errorf("the command ran %d times (%v), want once", len(runs), err)
	}
}

// A request that waits for the command of another one starts its own when that one ends.
func TestCallerGivesUp(t *testing.T) {
	dir := t.TempDir()
	pipe, again := filepath.Join(dir, "pipe"), filepath.Join(dir, "again")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := newTestSource(`test -e "$2" && { echo abc; exit; }; touch "$2"; exec 3>"$1"; echo >&3; sleep 3600 & wait`, pipe, again)
	first, end := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, _, err := s.get(first)
		given <- err
	}()
	running, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	if _, err := running.Read(make([]byte, 1)); err != nil { // the command runs
		t.Fatal(err)
	}
	type result struct {
		token string
		err   error
	}
	waited := make(chan result, 1)
	go func() {
		token, _, err := s.get(t.Context())
		waited <- result{token, err}
	}()
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if _, _, err := s.get(gone); err == nil || err.Error() != "gone" {
		t.Errorf("a request that has ended gets %v", err)
	}
	end()
	if err := <-given; !errors.Is(err, errGivenUp) {
		t.Errorf("the request that ended got %v", err)
	}
	if r := <-waited; r.err != nil || r.token != "abc" {
		t.Errorf("the request that waited got %q, %v", r.token, r.err)
	}
	if _, err := running.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the command or its child still runs: %v", err)
	}
}
