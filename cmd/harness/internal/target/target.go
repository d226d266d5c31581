// Package target locates a run: the gateway or the data directory of a command, the run that a
// handle names, and the calls that wait in it. A target is checked before it connects; a run that
// is not found keeps its handle, so that the request that follows reports it.
package target

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
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// Target locates a run.
type Target struct {
	Server     string `placeholder:"ADDR" help:"Gateway, HOST:PORT or unix:PATH. Default: the one of the data directory, or one in this process."`
	TokenFile  string `placeholder:"FILE" help:"File with the token or key for --server. Default: the key of a gateway of this user on this machine."`
	TLS        bool   `name:"tls" help:"Use TLS for --server, like https:// before the address."`
	TLSCA      string `name:"tls-ca" placeholder:"FILE" help:"CAs that sign the certificate of --server, PEM; implies --tls. Default: the CAs of the system."`
	Data       string `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Foreground bool   `help:"Use a mesh in this process, not the background process."`
	Namespace  string `default:"default" placeholder:"NS" help:"Namespace of the run."`

	// lasting: the session outlives the background process.
	lasting bool
	// background: the session is at the background process of the user.
	background bool
}

// StopTime bounds the clean stop of a mesh in this process.
const StopTime = 15 * time.Second

// Check decides between server and data. A flag overrides the environment.
func (t *Target) Check(a *console.Console) error {
	if err := a.Conflict("server", "data"); err != nil {
		return err
	}
	switch {
	case t.Server != "" && t.Data != "" && a.Given["data"]:
		t.Server, t.TokenFile = "", ""
	case t.Server != "" && t.Data != "" && !a.Given["server"]:
		return errors.New("HARNESS_SERVER and HARNESS_DATA are mutually exclusive: set one of them, or use a flag")
	case t.Server != "":
		t.Data = ""
	}
	a.Server = t.Server
	for _, flag := range []string{"token-file", "tls", "tls-ca"} {
		if a.Given[flag] && t.Server == "" {
			return fmt.Errorf("--%s: needs a gateway: set --server", flag)
		}
	}
	if !console.NameForm().MatchString(t.Namespace) && t.Namespace != "*" {
		return fmt.Errorf("--namespace: %q: expected letters, digits, - and _, at most 64", t.Namespace)
	}
	if t.Server != "" {
		return nil
	}
	if t.Data == "" {
		t.background = !t.Foreground && a.Program != "" && a.Env("CI") == ""
		dir, err := backend.DefaultData(a.Env)
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

// StartNone makes connect use the background process if it runs, and start none.
func (t *Target) StartNone() { t.background = false }

// Lasts makes the session of Connect join the next background process when that of its start has ended.
func (t *Target) Lasts() { t.lasting = true }

// Connect returns a session; a signal cancels it.
func (t *Target) Connect(ctx context.Context, a *console.Console, need backend.Need, keep ...string) (*backend.Session, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	models, err := a.Models()
	if err != nil {
		return nil, err
	}
	for i, run := range keep {
		keep[i] = t.Namespace + "/" + run
	}
	if t.Server != "" && t.TokenFile != "" {
		a.WarnOpenFile("--token-file", t.TokenFile)
	}
	var background *backend.Background
	if t.background || strings.HasPrefix(t.Server, "unix:") {
		background = NewBackground(a)
	}
	session, err := backend.Connect(ctx, backend.Options{
		Background: background, Lasting: t.lasting,
		Server: t.Server, TokenFile: t.TokenFile, TLS: t.TLS, CA: t.TLSCA, Data: t.Data, Keep: keep, Env: a.Env, Catalogue: models, Logger: a.Log,
	}, need)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return session, err
}

// Disconnect closes a session; a signal abandons it.
func Disconnect(ctx context.Context, a *console.Console, s *backend.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTime)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		if err != nil {
			a.Log.Warn("the mesh did not stop in order", "error", err)
		}
	case <-a.Signals:
	}
}

// Words returns the flags with which another command finds the same run.
func (t *Target) Words(a *console.Console) string {
	var words []string
	add := func(flag, value string) { words = append(words, " --"+flag+" "+Quote(value)) }
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
	} else if a.Given["data"] {
		add("data", t.Data)
	}
	if t.Namespace != "default" {
		add("namespace", t.Namespace)
	}
	return strings.Join(words, "")
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`) })

// Quote quotes a word for a shell, safe to print.
func Quote(word string) string {
	word = render.Clean(word)
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
