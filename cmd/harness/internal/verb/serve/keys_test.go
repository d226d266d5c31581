package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// TestKeyIsMissedOnlyWhereOneIsRequired: a process without a folder for the user's configuration, as in
// a container, warns only if clients need the key of its gateway.
func TestKeyIsMissedOnlyWhereOneIsRequired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cmd   Cmd
		warns bool
	}{
		"gateway on loopback":    {Cmd{Roles: []string{"gateway"}, Listen: "127.0.0.1:7447"}, true},
		"all roles on localhost": {Cmd{Roles: []string{"all"}, Listen: "localhost:7447"}, true},
		"tokens":                 {Cmd{Roles: []string{"gateway"}, Listen: "127.0.0.1:7447", secureFlags: secureFlags{Tokens: "tokens"}}, false},
		"tokens, every address":  {Cmd{Roles: []string{"gateway"}, Listen: "0.0.0.0:7447", secureFlags: secureFlags{Tokens: "tokens"}}, false},
		"insecure":               {Cmd{Roles: []string{"gateway"}, Listen: "0.0.0.0:7447", Insecure: true}, false},
		"open":                   {Cmd{Roles: []string{"gateway"}, Listen: "127.0.0.1:7447", secureFlags: secureFlags{Open: true}}, false},
		"another role":           {Cmd{Roles: []string{"turn"}, Listen: "127.0.0.1:0"}, false},
	} {
		var log bytes.Buffer
		a := &console.Console{Process: console.Process{Err: &bytes.Buffer{}}, Env: func(string) string { return "" }, Log: slog.New(slog.NewTextHandler(&log, nil))}
		var cfg node.Config
		if err := c.cmd.keys(a, &cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if warned := strings.Contains(log.String(), "level=WARN"); warned != c.warns {
			t.Errorf("%s: %q", name, log.String())
		}
	}
}
