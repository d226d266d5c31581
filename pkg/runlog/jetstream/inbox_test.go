package jetstream

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
)

// limited is a user that receives answers in its inbox alone, and answers only the requests that
// it receives.
func limited(name string) *server.User {
	return &server.User{Username: name, Password: "p", Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"hm.>", "$JS.API.>", "$JS.ACK.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"hm.>", "_INBOX." + name + ".>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}}
}

func withUser(url, name string) string { return "nats://" + name + ":p@" + url[len("nats://"):] }

// TestSystemLogOfALimitedUser runs the suite as a user that may subscribe no inbox but its own.
func TestSystemLogOfALimitedUser(t *testing.T) {
	t.Parallel()
	runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
		url := natsServer(t, &server.Options{Users: []*server.User{limited("worker")}})
		cfg := Config{URL: withUser(url, "worker"), Wait: readyTime}
		if err := Provision(t.Context(), cfg, Layout{MaxBytes: 64 << 20, Takeover: takeover}); err != nil {
			t.Fatal(err)
		}
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		test(t, l)
		if err := l.denied.err("here"); err != nil {
			t.Error(err)
		}
	})
}

// TestUsersReceiveAnswersInTheirInbox: requests of the log work for a user that may subscribe
// its inbox alone, and it may subscribe no other.
func TestUsersReceiveAnswersInTheirInbox(t *testing.T) {
	t.Parallel()
	url := natsServer(t, &server.Options{Users: []*server.User{limited("one"), limited("two")}})
	cfg := Config{URL: withUser(url, "one"), Wait: readyTime}
	if err := Provision(t.Context(), cfg, Layout{MaxBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	one, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	rec := first("r")
	if _, err := one.Append(t.Context(), rec); err != nil {
		t.Error(err)
	}
	if _, err := one.View(t.Context(), runOf(rec), 0); err != nil {
		t.Error(err)
	}
	for inbox, own := range map[string]bool{one.replies.prefix + "*": true, "_INBOX.two.>": false, "_INBOX.>": false} {
		refusals := make(chan string, 2)
		nc, err := nats.Connect(withUser(url, "one"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err.Error() }))
		if err != nil {
			t.Fatal(err)
		}
		// The server refuses in order, and the second to every user.
		_, err = nc.SubscribeSync(inbox)
		if err := errors.Join(err, nc.Publish("subject.refused", nil)); err != nil {
			t.Fatal(err)
		}
		if first := <-refusals; strings.Contains(first, "subject.refused") != own {
			t.Errorf("%s: %s", inbox, first)
		}
		nc.Close()
	}
}

// TestAnswersGoToInboxes only: a request that names another subject has none, so nothing is stored there.
func TestAnswersGoToInboxes(t *testing.T) {
	t.Parallel()
	l := open(t, start(t, EmbeddedConfig{}), Config{}, Layout{})
	run := runlog.Run{Namespace: "default", ID: "r"}
	asked := make(chan struct{}, 100)
	stop, err := l.Announce("turn", nil, func() *harnessv1.Presence { asked <- struct{}{}; return &harnessv1.Presence{Ready: true, Role: "turn"} })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	testify, err := l.Testify("turn", testimony{had: func(runlog.Run, uint64, uint64) bool { asked <- struct{}{}; return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer testify()
	hooks, err := l.ServeHooks(run, func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		asked <- struct{}{}
		return &harnessv1.HookAnswer{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hooks()
	requests := map[string]string{hereSubject: "", whereSubject + "turn": "", workSubject + "turn.default.r": "1 1", runlog.HookSubject(run): ""}
	for subject, data := range requests {
		for _, reply := range []string{runlog.InboxSubject(0, run), "$JS.API.STREAM.PURGE.RUNS_0", "_INBOXES.x", ""} {
			if err := l.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(data)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for subject, data := range requests { // each in the order of its subscription
		if _, err := l.nc.RequestWithContext(t.Context(), subject, []byte(data)); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	if n := len(asked); n != len(requests) {
		t.Errorf("%d requests have a response, not %d", n, len(requests))
	}
	if last, err := l.LastInbox(t.Context(), run); err != nil || last != 0 {
		t.Errorf("an answer is stored at %d, %v", last, err)
	}
}

// TestInboxIsNamedByTheUser of the credentials, or of the URL.
func TestInboxIsNamedByTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "creds")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	jwt := func(claims string) string {
		return "-----BEGIN NATS USER JWT-----\ne30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln\n------END NATS USER JWT------\n"
	}
	for _, c := range []struct{ url, creds, want string }{
		{"nats://h:4222", "", ""},
		{"nats://gateway:p@h:4222", "", "_INBOX.gateway"},
		{"gateway:p@h:4222", "", "_INBOX.gateway"},
		{"nats://turn-2:p@h:4222, nats://turn-2:p@i:4222", "", "_INBOX.turn-2"},
		{"nats://token@h:4222", "", ""},
		{"nats://a.b:p@h:4222", "", ""},
		{"nats://a%2A:p@h:4222", "", ""},
		{"nats://a%3E:p@h:4222", "", ""},
		{"nats://a%20b:p@h:4222", "", ""},
		{"nats://ä:p@h:4222", "", ""},
		{"nats://gateway:p@h:4222", "turn:q\n", "_INBOX.turn"},
		{"nats://h:4222", "turn", ""},
		{"nats://h:4222", jwt(`{"name":"repair","nats":{}}`), "_INBOX.repair"},
		{"nats://h:4222", jwt(`{"name":"a.>"}`), ""},
		{"nats://h:4222", jwt(`{`), ""},
		{"nats://h:4222", "-----BEGIN NATS USER JWT-----", ""},
	} {
		cfg := Config{URL: c.url}
		if c.creds != "" {
			cfg.Credentials = file(c.creds)
		}
		if got := inboxPrefix(cfg); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.url, c.creds, got, c.want)
		}
	}
}
