//go:build linux

package mcp_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/oauthtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// site starts a server of tools that wants a sign-in, and returns it with a file that names it.
// listed is the file that the server makes after it has listed its tools; empty: none.
func signInSite(t *testing.T, listed string) (*oauthtest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	site := oauthtest.New(t, servertest.TestHandler(t, func(name string) string {
		return map[string]string{servertest.Lines: filepath.Join(dir, "lines"), servertest.Listed: listed}[name]
	}))
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"web": {"url": "`+site.Resource()+`"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	return site, file
}

var addressLine = regexp.MustCompile(`(?m)^http://\S+/authorize\?\S+$`)

// login runs harness mcp login as a process, and calls act with the address that it prints and its
// input. It returns what it printed and its exit code.
func login(t *testing.T, act func(address string, in io.Writer), args ...string) (string, int) {
	t.Helper()
	cmd := harnesstest.Program(t, append([]string{"mcp", "login", "web", "--no-browser"}, args...)...)
	printed := harnesstest.NewText()
	cmd.Stdout, cmd.Stderr = printed, printed
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	printed.Expect(t, "paste the address", 1)
	act(addressLine.FindString(printed.String()), in)
	code := harnesstest.ExitCode(t, cmd)
	return printed.String(), code
}

// visit opens the address as a browser does that follows the redirect.
func visit(t *testing.T, site *oauthtest.Server, address string) {
	t.Helper()
	to := site.Agree(address)
	other := *to
	other.RawQuery = "state=other&code=x"
	get := func(u string) int {
		response, err := http.Get(u)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	for _, u := range []string{other.String(), strings.Replace(to.String(), "/callback", "/", 1)} {
		if got := get(u); got != http.StatusNotFound {
			t.Errorf("%s: %d", u, got)
		}
	}
	if got := get(to.String()); got != http.StatusOK {
		t.Errorf("%d", got)
	}
}

// TestPersonSignsInFromTheCommandLine: by the browser's return, by the pasted address, and by the
// code; then the server is listed as ready, the doctor has no complaint, and a sign-out ends that.
func TestPersonSignsInFromTheCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	site, file := signInSite(t, "")
	data := filepath.Join(t.TempDir(), "data")
	list := func() harnesstest.Outcome {
		return harnesstest.Call(t, nil, "", "mcp", "list", "--mcp", file, "--data", data)
	}
	harnesstest.WithoutBus(t)
	doctor := func() string { return harnesstest.Call(t, nil, "", "doctor", "--mcp", file, "--data", data).Out }
	if got := doctor(); !strings.Contains(got, "problem:  server web: a person has to sign in: type harness mcp login web") {
		t.Errorf("%s", got)
	}
	if got := list(); got.Code != 1 || !strings.Contains(got.Out, "needs sign in") || !strings.Contains(got.Out, "harness mcp login web") {
		t.Fatalf("%+v", got)
	}
	for name, act := range map[string]func(string, io.Writer){
		"browser": func(address string, _ io.Writer) { visit(t, site, address) },
		"pasted address": func(address string, in io.Writer) {
			_, _ = io.WriteString(in, "\n"+site.URL+"/?code=x&state=other\n"+site.Agree(address).String()+"\n")
		},
		"pasted code": func(address string, in io.Writer) {
			_, _ = io.WriteString(in, site.Agree(address).Query().Get("code")+"\n")
		},
	} {
		// Without metadata a response needs no issuer, so a code is enough.
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{NoMetadata: name == "pasted code"} })
		if printed, code := login(t, act, "--mcp", file, "--data", data); code != 0 || !strings.Contains(printed, "signed in at web, and the token is renewed") {
			t.Fatalf("%s: %d, %s", name, code, printed)
		}
		if got := list(); got.Code != 0 || !strings.Contains(got.Out, "web  ready") {
			t.Errorf("%s: %+v", name, got)
		}
		if got := doctor(); strings.Contains(got, "server web") {
			t.Errorf("%s: %s", name, got)
		}
		if got := harnesstest.Call(t, nil, "", "mcp", "logout", "web", "--mcp", file, "--data", data); got.Code != 0 || got.Out != "signed out of web\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := list(); got.Code != 1 || !strings.Contains(got.Out, "needs sign in") {
		t.Errorf("%+v", got)
	}
}

// TestSignInsThatFailAreOneLine: what a person reads of a sign-in that does not succeed.
func TestSignInsThatFailAreOneLine(t *testing.T) {
	t.Parallel()
	site, file := signInSite(t, "")
	data := filepath.Join(t.TempDir(), "data")
	site.Change(func(s *oauthtest.Settings) { s.ResponseIssuer = "https://evil.example" })
	printed, code := login(t, func(address string, _ io.Writer) { visit(t, site, address) }, "--mcp", file, "--data", data)
	if code != 1 || !strings.Contains(printed, "is not from "+site.URL) {
		t.Errorf("another issuer: %d, %s", code, printed)
	}
	printed, code = login(t, func(address string, in io.Writer) {
		u, _ := url.Parse(address)
		_, _ = io.WriteString(in, "http://127.0.0.1/callback?error=access_denied&state="+u.Query().Get("state")+"&iss="+url.QueryEscape(site.URL)+"\n")
	}, "--mcp", file, "--data", data)
	if code != 1 || !strings.Contains(printed, "access_denied") {
		t.Errorf("a person who does not agree: %d, %s", code, printed)
	}
	printed, code = login(t, func(string, io.Writer) {}, "--mcp", file, "--data", data, "--wait", "10ms")
	if code != 1 || !strings.Contains(printed, "no browser has returned within 10ms") {
		t.Errorf("no return: %d, %s", code, printed)
	}
	for want, args := range map[string][]string{
		"unknown server": {"other", "--mcp", file, "--data", data},
		"--mcp":          {"web", "--mcp", file + ".none", "--data", data},
	} {
		if got := harnesstest.Call(t, nil, "", append([]string{"mcp", "login"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestPersonSignsInAtAMesh: with a token that may, at an address that the operator allows; the tool
// host of the mesh has the token then.
func TestPersonSignsInAtAMesh(t *testing.T) {
	t.Parallel()
	site, file := signInSite(t, "")
	_, private := signInSite(t, "")
	dir := t.TempDir()
	host := site.Rename()
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"web": {"url": "`+site.Resource()+`"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const may, mayNot = "0123456789abcdef1", "0123456789abcdef2"
	tokens := write("tokens", may+" *\n"+mayNot+" * may=commands\n")
	mesh := harnesstest.StartServe(t, workflow.Roles(), "--sync", "interval", "--listen", "127.0.0.1:0", "--tokens", tokens, "--sandbox-private-host", host)
	at := func(token string) []string {
		return []string{"--server", mesh.Addresses["gateway"], "--token-file", write("token-"+token[len(token)-1:], token)}
	}
	list := func() harnesstest.Outcome {
		return harnesstest.Call(t, nil, "", append([]string{"mcp", "list", "--mcp", file}, at(may)...)...)
	}
	if got := list(); got.Code != 0 || !strings.Contains(got.Out, "web  not signed in") {
		t.Errorf("%+v", got)
	}
	for want, args := range map[string][]string{
		"no right \"approve\"":      append([]string{"--mcp", file}, at(mayNot)...),
		"only the ports 80 and 443": append([]string{"--mcp", private}, at(may)...),
	} {
		if got := harnesstest.Call(t, nil, "", append([]string{"mcp", "login", "web"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", want, got)
		}
	}
	printed, code := login(t, func(address string, _ io.Writer) { visit(t, site, address) }, append([]string{"--mcp", file}, at(may)...)...)
	if code != 0 || !strings.Contains(printed, "signed in at web") {
		t.Fatalf("%d, %s", code, printed)
	}
	if got := list(); got.Code != 0 || !strings.Contains(got.Out, "web  signed in") {
		t.Errorf("%+v", got)
	}
	for _, secret := range site.Secrets() {
		if strings.Contains(mesh.Errs.String()+printed, secret) {
			t.Errorf("a secret was printed: %s", mesh.Errs)
		}
	}
	if got := harnesstest.Call(t, nil, "", append([]string{"mcp", "logout", "web", "--mcp", file}, at(may)...)...); got.Code != 0 || got.Out != "signed out of web\n" || site.Counts().Revocations != 1 {
		t.Errorf("%+v, %+v", got, site.Counts())
	}
}

// TestRunReportsAServerThatNeedsAPerson: its event names what to type, and after a sign-in the
// next message of the same run calls the server.
func TestRunReportsAServerThatNeedsAPerson(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, `turns:
  - {calls: [{name: work_complete, arguments: {summary: Nothing yet.}}]}
  - {calls: [{name: run_command, arguments: {command: "until [ -e listed ]; do sleep 0.05; done"}}]}
  - {calls: [{name: list_directory, arguments: {}}]}
  - {calls: [{name: call_tool, arguments: {name: mcp__web__append, arguments: {line: one}}}]}
  - {calls: [{name: work_complete, arguments: {summary: Written.}}]}
`)
	site, file := signInSite(t, filepath.Join(p.Workspace, "listed")) // its tools are there from the next turn on
	got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "--mcp", file, "--yolo", "--output", "jsonl", "go")...)
	if got.Code != 0 || !strings.Contains(got.Out, `"needs_sign_in"`) || !strings.Contains(got.Out, "harness mcp login web") {
		t.Fatalf("%+v", got)
	}
	if printed, code := login(t, func(address string, _ io.Writer) { visit(t, site, address) }, "--mcp", file, "--data", p.Data); code != 0 {
		t.Fatal(printed)
	}
	got = harnesstest.Call(t, nil, "", "run", "--data", p.Data, "--continue", "r", "--output", "jsonl", "again")
	if lines, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "lines")); got.Code != 0 || string(lines) != "one\n" {
		t.Errorf("%q, %+v", lines, got)
	}
	for _, secret := range site.Secrets() {
		if strings.Contains(got.Out+got.Err, secret) {
			t.Errorf("a secret is in an event: %s", got.Out)
		}
	}
}
