package mesh

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/oauthtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const signedIn = `turns:
  - {calls: [{name: mcp__web__append, arguments: {line: %s}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemSignInReachesEveryToolHost: after one login against a mesh with two tool hosts, runs use the
// server whichever host has their calls. Each host has its own tokens, so that each can renew them,
// and a host that starts later is named.
func TestSystemSignInReachesEveryToolHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := filepath.Join(dir, "lines")
	site := oauthtest.New(t, servertest.TestHandler(t, func(name string) string {
		return map[string]string{servertest.Lines: lines}[name]
	}))
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"web": {"url": "`+site.Resource()+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := meshtest.Start(t, bin, meshtest.Config{})
	m.Start("toolhost-2")
	m.AwaitReady("toolhost-2")
	at := func(command ...string) []string {
		return append(append([]string{"mcp"}, command...), "--mcp", file, "--server", m.Gateway(), "--token-file", filepath.Join(m.Data("gateway"), "gateway.key"))
	}
	list := func() string { return m.Harness(at("list")...) }
	if got := list(); strings.Count(got, "not signed in at tool host ") != 2 {
		t.Fatalf("before: %s", got)
	}
	if printed := signIn(t, site, at("login", "web", "--no-browser")); strings.Count(printed, "agree:") != 2 || !strings.Contains(printed, "signed in at web, and the token is renewed") {
		t.Fatal(printed)
	}
	if got := list(); strings.Count(got, "  signed in at tool host ") != 2 {
		t.Fatalf("after: %s", got)
	}
	run := func(id string) {
		t.Helper()
		s := spec(scriptFile(id, fmt.Sprintf(signedIn, id)), newWorkspace(t))
		s.Agent.Mcp = []*harnessv1.McpServer{{Name: "web", Url: site.Resource()}}
		if _, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
			return m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: s})
		}); err != nil {
			t.Fatal(err)
		}
		m.Ended(runlog.Run{Namespace: "default", ID: id}, 0)
		if data, _ := os.ReadFile(lines); !strings.HasSuffix(string(data), id+"\n") {
			t.Errorf("%s: lines %q", id, data)
		}
		site.Expire() // each host renews its own tokens
	}
	run("both")
	m.Process("toolhost").Kill()
	run("second")
	m.Start("toolhost")
	m.AwaitReady("toolhost")
	m.Process("toolhost-2").Kill()
	run("first")
	m.Start("toolhost-2")
	m.AwaitReady("toolhost-2")
	m.Start("toolhost-3")
	m.AwaitReady("toolhost-3")
	if got := list(); strings.Count(got, "  signed in at tool host ") != 2 || strings.Count(got, "not signed in at tool host ") != 1 {
		t.Errorf("with a third one: %s", got)
	}
	if printed := signIn(t, site, at("login", "web", "--no-browser")); strings.Count(printed, "agree:") != 1 {
		t.Errorf("a login signs in where it is missing: %s", printed)
	}
	if counts := site.Counts(); counts.Exchanges != 3 || counts.Reuses != 0 {
		t.Errorf("%+v", counts)
	}
	if got := m.Harness(at("logout", "web")...); !strings.HasPrefix(got, "signed out of web at ") || strings.Count(got, "tool host ") != 3 || site.Counts().Revocations != 3 {
		t.Errorf("%s, %+v", got, site.Counts())
	}
	if got := list(); strings.Count(got, "not signed in at tool host ") != 3 {
		t.Errorf("after logout: %s", got)
	}
}

var authorize = regexp.MustCompile(`(?m)^http://\S+/authorize\?\S+$`)

// signIn runs a login as a person who pastes the address of each last page.
func signIn(t *testing.T, site *oauthtest.Server, args []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin.Harness, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, write := io.Pipe()
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(t.TempDir(), "config"))
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = write.CloseWithError(cmd.Wait()) }()
	var printed strings.Builder
	done := 0
	for part := make([]byte, 4096); ; {
		n, err := out.Read(part)
		printed.Write(part[:n])
		addresses := authorize.FindAllString(printed.String(), -1)
		for ; done < min(len(addresses), strings.Count(printed.String(), "paste the address")); done++ {
			if _, err := io.WriteString(in, site.Agree(addresses[done]).String()+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			return printed.String()
		}
	}
}
