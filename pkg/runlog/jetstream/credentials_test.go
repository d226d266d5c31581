package jetstream

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

// natsServer starts a server on loopback and returns its URL.
func natsServer(t *testing.T, options *server.Options) string {
	t.Helper()
	return runServer(t, options).ClientURL()
}

func runServer(t *testing.T, options *server.Options) *server.Server {
	t.Helper()
	options.Host, options.Port, options.NoSigs, options.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	options.JetStream, options.StoreDir = true, t.TempDir()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(readyTime) {
		t.Fatal("the server is not ready")
	}
	return s
}

const readyTime = 30 * time.Second

// TestServerThatAcceptsAnyClientIsFound by connecting, whatever the own credentials are, unless the
// server requires credentials: then its log has no error.
func TestServerThatAcceptsAnyClientIsFound(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	pair := ca.Issue([]string{"127.0.0.1"})
	secure := func(verify bool) *server.Options {
		cfg, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: pair.Cert, KeyFile: pair.Key, CaFile: ca.File, Verify: verify})
		if err != nil {
			t.Fatal(err)
		}
		return &server.Options{TLS: true, TLSVerify: verify, TLSConfig: cfg}
	}
	const public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
	for name, c := range map[string]struct {
		options *server.Options
		ca      string
		open    bool
	}{
		"nothing":            {&server.Options{}, "", true},
		"a password":         {&server.Options{Username: "u", Password: "p"}, "", false},
		"users":              {&server.Options{Users: []*server.User{{Username: "u", Password: "p"}}}, "", false},
		"a token":            {&server.Options{Authorization: "secret"}, "", false},
		"keys":               {&server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, "", false},
		"a user for all":     {&server.Options{Users: []*server.User{{Username: "u", Password: "p"}}, NoAuthUser: "u"}, "", true},
		"TLS":                {secure(false), ca.File, true},
		"TLS, another CA":    {secure(false), "", false},
		"client certificate": {secure(true), ca.File, false},
	} {
		url := natsServer(t, c.options)
		_, at, _ := strings.Cut(url, "://")
		for _, list := range []string{url, "nats://u:p@" + at, "secret@" + at, "nats://u:p@" + at + ", nats://u:p@" + at} {
			if got := acceptsAnyClient(t.Context(), Config{URL: list, TLS: TLSFiles{CA: c.ca}}); got != c.open {
				t.Errorf("%s, %s: %v", name, list, got)
			}
		}
	}
	if acceptsAnyClient(t.Context(), Config{URL: "nats://127.0.0.1:1"}) {
		t.Error("a server that is not there")
	}
}

// loggedErrors are the errors in the log of a server.
type loggedErrors struct {
	mu    sync.Mutex
	texts []string
}

func (*loggedErrors) Noticef(string, ...any) {}
func (*loggedErrors) Warnf(string, ...any)   {}
func (*loggedErrors) Debugf(string, ...any)  {}
func (*loggedErrors) Tracef(string, ...any)  {}
func (l *loggedErrors) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
}

func (l *loggedErrors) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, fmt.Sprintf(format, v...))
}

// TestServerWithUsersLogsNoError: its requirement is known without a try. A client without
// credentials shows that an error would be seen.
func TestServerWithUsersLogsNoError(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	pair := ca.Issue([]string{"127.0.0.1"})
	secured, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: pair.Cert, KeyFile: pair.Key})
	if err != nil {
		t.Fatal(err)
	}
	users := []*server.User{{Username: "u", Password: "p"}}
	for name, options := range map[string]*server.Options{"plain": {Users: users}, "TLS": {Users: users, TLS: true, TLSConfig: secured}} {
		s, seen := runServer(t, options), &loggedErrors{}
		s.SetLogger(seen, false, false)
		_, at, _ := strings.Cut(s.ClientURL(), "://")
		cfg := Config{URL: "nats://u:p@" + at, Logger: slog.New(slog.DiscardHandler)}
		if options.TLS {
			cfg.TLS.CA = ca.File
		}
		l, err := connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if l.AcceptsAnyClient(t.Context(), cfg) {
			t.Errorf("%s: a server with users accepts any client", name)
		}
		l.Close()
		if len(seen.texts) > 0 {
			t.Errorf("%s: the server logs %q", name, seen.texts)
		}
		if acceptsAnyClient(t.Context(), cfg) || len(seen.texts) == 0 {
			t.Errorf("%s: a client without credentials leaves no error: %q", name, seen.texts)
		}
	}
}

// TestPasswordComesFromAFile, which is read again, and never appears in an error.
func TestPasswordComesFromAFile(t *testing.T) {
	t.Parallel()
	url, file := natsServer(t, &server.Options{Username: "mesh", Password: "right:with=colons"}), filepath.Join(t.TempDir(), "creds")
	for text, want := range map[string]string{
		"mesh:right:with=colons\n": "", "mesh:wrongword": "refuses the credentials", "": "one line USER:PASSWORD", "mesh": "USER:PASSWORD", ":wrongword": "USER:PASSWORD",
		"mesh:": "USER:PASSWORD", "mesh:wrong word": "USER:PASSWORD", "mesh:wrongword\nother:x": "USER:PASSWORD",
		"-----BEGIN NATS USER JWT-----\nwrongword\n------END NATS USER JWT------\n": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := connect(t.Context(), Config{URL: url, Credentials: file})
		if err == nil {
			l.Close()
		}
		failed := want != "" || strings.Contains(text, "BEGIN")
		if (err != nil) != failed || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrongword")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := connect(t.Context(), Config{URL: url, Credentials: file + "x"}); err == nil || !strings.Contains(err.Error(), "--nats-creds") {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("mesh:first-one"), 0o600); err != nil {
		t.Fatal(err)
	}
	option, err := credentialOption(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("mesh:right:with=colons"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := dial(t.Context(), Config{URL: url, Wait: defaultWait}, time.Now().Add(defaultWait), []nats.Option{option})
	if err != nil {
		t.Fatalf("the file is not read again: %v", err)
	}
	l.Close()
}
