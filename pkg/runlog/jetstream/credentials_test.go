package jetstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

// natsServer starts a server on loopback and returns its URL.
func natsServer(t *testing.T, options *server.Options) string {
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
	return s.ClientURL()
}

const readyTime = 30 * time.Second

// TestServerThatAcceptsAnyClientIsFound by connecting, whatever the own credentials are.
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
			if got := AcceptsAnyClient(t.Context(), Config{URL: list, TLS: TLSFiles{CA: c.ca}}); got != c.open {
				t.Errorf("%s, %s: %v", name, list, got)
			}
		}
	}
	if AcceptsAnyClient(t.Context(), Config{URL: "nats://127.0.0.1:1"}) {
		t.Error("a server that is not there")
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
