package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// target locates a run.
type target struct {
	Server     string `placeholder:"ADDR" help:"Gateway, HOST:PORT or unix:PATH. Default: the one of the data directory, or one in this process."`
	TokenFile  string `placeholder:"FILE" help:"File with the token or key for --server. Default: the key of a gateway of this user on this machine."`
	TLS        bool   `name:"tls" help:"Use TLS for --server, like https:// before the address."`
	TLSCA      string `name:"tls-ca" placeholder:"FILE" help:"CAs that sign the certificate of --server, PEM; implies --tls. Default: the CAs of the system."`
	Data       string `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Foreground bool   `help:"Use a mesh in this process, not the background process."`
	Namespace  string `default:"default" placeholder:"NS" help:"Namespace of the run."`

	// background: the session is at the background process of the user.
	background bool
}

// stopTime bounds the clean stop of a mesh in this process.
const stopTime = 15 * time.Second

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// check decides between server and data. A flag overrides the environment.
func (t *target) check(a *app) error {
	if err := a.conflict("server", "data"); err != nil {
		return err
	}
	switch {
	case t.Server != "" && t.Data != "" && a.given["data"]:
		t.Server, t.TokenFile = "", ""
	case t.Server != "" && t.Data != "" && !a.given["server"]:
		return errors.New("HARNESS_SERVER and HARNESS_DATA are mutually exclusive: set one of them, or use a flag")
	case t.Server != "":
		t.Data = ""
	}
	for _, flag := range []string{"token-file", "tls", "tls-ca"} {
		if a.given[flag] && t.Server == "" {
			return fmt.Errorf("--%s: needs a gateway: set --server", flag)
		}
	}
	if !nameForm().MatchString(t.Namespace) && t.Namespace != "*" {
		return fmt.Errorf("--namespace: %q: expected letters, digits, - and _, at most 64", t.Namespace)
	}
	if t.Server != "" {
		return nil
	}
	if t.Data == "" {
		t.background = !t.Foreground && a.program != "" && a.env("CI") == ""
		dir, err := backend.DefaultData(a.env)
		if err != nil {
			return err
		}
		t.Data = dir
	}
	abs, err := filepath.Abs(t.Data)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	t.Data = abs
	return nil
}

// startNone makes connect use the background process if it runs, and start none.
func (t *target) startNone() { t.background = false }

// connect returns a session; a signal cancels it.
func (t *target) connect(ctx context.Context, a *app, need backend.Need, keep ...string) (*backend.Session, error) {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	models, err := a.models()
	if err != nil {
		return nil, err
	}
	for i, run := range keep {
		keep[i] = t.Namespace + "/" + run
	}
	if t.Server != "" && t.TokenFile != "" {
		a.warnOpenFile("--token-file", t.TokenFile)
	}
	var background *backend.Background
	if t.background {
		background = newBackground(a)
	}
	session, err := backend.Connect(ctx, backend.Options{
		Background: background, Server: t.Server, TokenFile: t.TokenFile, TLS: t.TLS, CA: t.TLSCA, Data: t.Data, Keep: keep, Env: a.env, Catalogue: models, Logger: a.log,
	}, need)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return session, err
}

// disconnect closes a session; a signal abandons it.
func disconnect(ctx context.Context, a *app, s *backend.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		if err != nil {
			a.log.Warn("the mesh did not stop in order", "error", err)
		}
	case <-a.signals:
	}
}

// words returns the flags with which another command finds the same run.
func (t *target) words(a *app) string {
	var words []string
	add := func(flag, value string) { words = append(words, " --"+flag+" "+quote(value)) }
	if t.Server != "" {
		add("server", t.Server)
		if t.TokenFile != "" {
			add("token-file", t.TokenFile)
		}
		if t.TLSCA != "" {
			add("tls-ca", t.TLSCA)
		} else if t.TLS {
			words = append(words, " --tls")
		}
	} else if a.given["data"] {
		add("data", t.Data)
	}
	if t.Namespace != "default" {
		add("namespace", t.Namespace)
	}
	return strings.Join(words, "")
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`) })

// quote quotes a word for a shell, safe to print.
func quote(word string) string {
	word = render.Clean(word)
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
