package mcp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// signInFlags name a server at which a person signs in or out.
type signInFlags struct {
	Name          string   `arg:"" name:"server" help:"Name of the server."`
	Agent         string   `placeholder:"FILE" help:"Agent file with the server."`
	MCP           []string `name:"mcp" placeholder:"FILE" help:"File with servers under the key mcpServers, such as .mcp.json; repeatable."`
	target.Target `embed:""`
}

// subject returns the server that the flags name.
func (c *signInFlags) subject(a *console.Console) (*harnessv1.SignInSubject, error) {
	flags := &runspec.Flags{Agent: c.Agent, MCP: c.MCP}
	flags.ReadWith(acceptance.Of(a, &c.Target).Read)
	file, err := flags.Files(c.Server == "")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(file.Agent.GetMcp(), func(s *harnessv1.McpServer) bool { return s.GetName() == c.Name })
	if i < 0 {
		return nil, fmt.Errorf("unknown server %q: name the file that has it with --agent or --mcp", c.Name)
	}
	return subjectOf(a, file.Agent.GetMcp()[i])
}

// subjectOf returns a server with the variables of this process that its settings name.
func subjectOf(a *console.Console, server *harnessv1.McpServer) (*harnessv1.SignInSubject, error) {
	models, err := a.Models()
	if err != nil {
		return nil, err
	}
	subject := &harnessv1.SignInSubject{Server: server, Variables: map[string]string{}}
	for _, name := range mcptool.Variables([]*harnessv1.McpServer{server}) {
		if value := a.Env(name); value != "" && !slices.Contains(models.Variables(), name) {
			subject.Variables[name] = value
		}
	}
	return subject, nil
}

// with connects to a mesh with a tool host, and calls do.
func (c *signInFlags) with(ctx context.Context, a *console.Console, do func(context.Context, harnessv1.GatewayServiceClient, *harnessv1.SignInSubject) error) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	subject, err := c.subject(a)
	if err != nil {
		return exit.Error, err
	}
	need := backend.Drive
	if _, err := os.Stat(c.Data); c.Server == "" && errors.Is(err, os.ErrNotExist) {
		need = backend.Own
	}
	session, err := c.Connect(ctx, a, need)
	if err != nil {
		return console.Before(err)
	}
	defer func() { target.Disconnect(ctx, a, session) }()
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	if err := do(ctx, session.Client, subject); err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}

// mcpLogoutCmd signs out.
type mcpLogoutCmd struct {
	signInFlags `embed:""`
}

func (c *mcpLogoutCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient, subject *harnessv1.SignInSubject) error {
		r, err := client.SignOut(ctx, &harnessv1.SignOutRequest{Namespace: c.Namespace, Subject: subject})
		if err != nil {
			return err
		}
		text := "signed out of " + c.Name
		if !r.GetRemoved() {
			text = "not signed in at " + c.Name
		}
		if at := reached(r.GetHosts()); len(at) > 1 { // one that has not answered at all keeps its sign-in
			text += " at " + instances(at)
		}
		if _, err = fmt.Fprintln(a.Out, text); err != nil {
			return err
		}
		return awayHosts(r.GetHosts(), "logout", c.Name)
	})
}

// mcpLoginCmd signs in.
type mcpLoginCmd struct {
	signInFlags `embed:""`
	NoBrowser   bool              `help:"Print the address only, and open no browser."`
	Port        uint16            `placeholder:"N" help:"Port of this machine to which the browser returns, for a client that is registered with it. Default: a free one."`
	Wait        *console.Duration `placeholder:"D" help:"How long to wait for the browser. Default and most: 10m."`
}

// loginTime is how long a sign-in is valid.
const loginTime = 10 * time.Minute

func (c *mcpLoginCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient, subject *harnessv1.SignInSubject) error {
		have, err := client.GetSignIn(ctx, &harnessv1.GetSignInRequest{Namespace: c.Namespace, Subject: subject})
		if err != nil {
			return err
		}
		hosts := signInTargets(have.GetHosts())
		l := &browserLogin{mcpLoginCmd: c, app: a, client: client, subject: subject, lines: inputLines(a.In)}
		var state *harnessv1.SignInState
		for i, host := range hosts {
			if len(have.GetHosts()) > 1 {
				fmt.Fprintf(a.Err, "tool host %s, sign-in %d of %d: each tool host has its own\n", render.Clean(host.GetInstance()), i+1, len(hosts))
			}
			if state, err = l.at(ctx, host); err != nil {
				return partly(c.Name, hosts[i:], len(have.GetHosts()) > 1, err)
			}
		}
		if _, err = fmt.Fprintf(a.Out, "signed in at %s%s\n", c.Name, validText(state)); err != nil {
			return err
		}
		return awayHosts(have.GetHosts(), "login", c.Name)
	})
}

// signInTargets returns the tool hosts at which a person signs in: those without a sign-in, and
// those where calls have lacked rights; all if there are none.
func signInTargets(hosts []*harnessv1.SignInHost) []*harnessv1.SignInHost {
	var answered, without []*harnessv1.SignInHost
	for _, h := range hosts {
		if h.GetError() != "" {
			continue
		}
		answered = append(answered, h)
		if !h.GetState().GetSignedIn() || len(h.GetState().GetLacked()) > 0 {
			without = append(without, h)
		}
	}
	switch {
	case len(hosts) == 0: // an earlier gateway, which has one tool host
		return []*harnessv1.SignInHost{{}}
	case len(without) == 0:
		return answered
	}
	return without
}

// partly returns the error of a sign-in at the first of hosts, with those that have none now.
func partly(server string, hosts []*harnessv1.SignInHost, several bool, err error) error {
	if !several {
		return err
	}
	return fmt.Errorf("%w; without a sign-in: %s; type harness mcp login %s again", err, instances(hosts), server)
}

// reached returns the tool hosts that have answered.
func reached(hosts []*harnessv1.SignInHost) (at []*harnessv1.SignInHost) {
	for _, h := range hosts {
		if h.GetError() == "" {
			at = append(at, h)
		}
	}
	return at
}

// awayHosts returns an error if tool hosts have not answered.
func awayHosts(hosts []*harnessv1.SignInHost, command, server string) error {
	var away []*harnessv1.SignInHost
	for _, h := range hosts {
		if h.GetError() != "" {
			away = append(away, h)
		}
	}
	if len(away) == 0 {
		return nil
	}
	return fmt.Errorf("not at %s: %s; type harness mcp %s %s again when it answers", instances(away), console.OneLine(away[0].GetError()), command, server)
}

// instances names tool hosts.
func instances(hosts []*harnessv1.SignInHost) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = "tool host " + console.OneLine(h.GetInstance())
	}
	return strings.Join(names, ", ")
}

// browserLogin is a sign-in at one server.
type browserLogin struct {
	*mcpLoginCmd
	app     *console.Console
	client  harnessv1.GatewayServiceClient
	subject *harnessv1.SignInSubject
	lines   <-chan string
}

// at signs in at a tool host.
func (l *browserLogin) at(ctx context.Context, host *harnessv1.SignInHost) (*harnessv1.SignInState, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(l.Port))))
	if err != nil {
		return nil, fmt.Errorf("--port: %w", err)
	}
	defer listener.Close()
	started, err := l.client.StartSignIn(ctx, &harnessv1.StartSignInRequest{
		Namespace: l.Namespace, Subject: l.subject, RedirectUri: "http://" + listener.Addr().String() + "/callback", LedgerId: host.GetLedgerId(),
	})
	if err != nil {
		return nil, err
	}
	start := started.GetStart()
	if text := otherHost(l.subject.GetServer(), start.GetAuthorizationUrl()); text != "" {
		fmt.Fprintln(l.app.Err, text)
	}
	fmt.Fprintf(l.app.Err, "open this address in a browser, and agree:\n\n%s\n\nIf the browser cannot return here, paste the address of its last page, or the code that it shows.\n", render.Clean(start.GetAuthorizationUrl()))
	if !l.NoBrowser && l.app.Interactive() {
		openBrowser(l.app, start.GetAuthorizationUrl())
	}
	wait := loginTime
	if l.Wait != nil {
		wait = min(wait, l.Wait.D)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("no browser has returned within %v: begin again", wait))
	defer cancel()
	returned, err := l.awaitReturn(waiting, listener, start.GetState())
	if err != nil {
		return nil, err
	}
	returned.LedgerId = start.GetLedgerId()
	finished, err := l.client.FinishSignIn(context.WithoutCancel(ctx), &harnessv1.FinishSignInRequest{Namespace: l.Namespace, Returned: returned})
	return finished.GetState(), err
}

// otherHost returns what a person checks before they agree at a host that is not the server's; empty if it is. The
// server chooses where people sign in for it.
func otherHost(server *harnessv1.McpServer, address string) string {
	page, err := url.Parse(address)
	if err != nil {
		return ""
	}
	at, err := url.Parse(server.GetUrl())
	if err != nil || strings.EqualFold(at.Hostname(), page.Hostname()) {
		return ""
	}
	return fmt.Sprintf("the token of this sign-in at %s is sent to the server %s at %s: agree only if that server may use your account there",
		console.OneLine(page.Hostname()), console.OneLine(server.GetName()), console.OneLine(at.Host))
}

// inputLines returns the lines of an input. Reading ends with the process.
func inputLines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			if text := strings.TrimSpace(scanner.Text()); text != "" {
				lines <- text
			}
		}
	}()
	return lines
}

// validText returns how long a sign-in lasts.
func validText(s *harnessv1.SignInState) string {
	switch {
	case s.GetRenewed():
		return ", and the token is renewed when it expires"
	case s.GetValid() != nil:
		return ", for " + s.GetValid().AsDuration().Round(time.Second).String()
	}
	return ""
}

// awaitReturn waits for the browser at a listener, or for a person who pastes what it shows.
func (l *browserLogin) awaitReturn(ctx context.Context, listener net.Listener, state string) (*harnessv1.SignInReturn, error) {
	returns := make(chan *harnessv1.SignInReturn, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.URL.Path != "/callback" || r.URL.Query().Get("state") != state {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintln(w, "This is no answer to the sign-in that harness has begun.")
			return
		}
		_, _ = fmt.Fprintln(w, "harness continues in its terminal. You can close this page.")
		select {
		case returns <- returnOf(r.URL.Query(), state):
		default:
		}
	})}
	served := make(chan struct{})
	go func() {
		_ = server.Serve(listener)
		close(served)
	}()
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(stop) != nil { // the page is sent first
			_ = server.Close()
		}
		<-served
	}()
	for {
		select {
		case r := <-returns:
			return r, nil
		case text := <-l.lines:
			r, err := pasted(text, state)
			if err == nil {
				return r, nil
			}
			fmt.Fprintln(l.app.Err, err)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// pasted returns what a person has pasted: an address, its parameters, or a code.
func pasted(text, state string) (*harnessv1.SignInReturn, error) {
	_, query, address := strings.Cut(text, "?")
	if !address && strings.Contains(text, "code=") {
		query, address = text, true
	}
	if !address {
		return &harnessv1.SignInReturn{State: state, Code: text}, nil
	}
	q, err := url.ParseQuery(query)
	if err != nil || q.Get("code") == "" && q.Get("error") == "" {
		return nil, errors.New("the address has no code: paste that of the page after you have agreed")
	}
	if q.Get("state") != state {
		return nil, errors.New("the address is that of another sign-in: paste that of the page after you have agreed")
	}
	return returnOf(q, state), nil
}

func returnOf(q url.Values, state string) *harnessv1.SignInReturn {
	r := &harnessv1.SignInReturn{State: state, Code: q.Get("code"), Issuer: q.Get("iss")}
	if r.GetCode() == "" {
		r.Error = strings.TrimSuffix(cmp.Or(q.Get("error"), "no code")+": "+q.Get("error_description"), ": ")
	}
	return r
}

// openBrowser opens an address in the browser of a desktop; without one nothing happens.
func openBrowser(a *console.Console, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return
	}
	for _, program := range []string{"xdg-open", "open"} {
		if program == "xdg-open" && a.Env("DISPLAY") == "" && a.Env("WAYLAND_DISPLAY") == "" {
			continue
		}
		if path, err := exec.LookPath(program); err == nil {
			cmd := exec.Command(path, u.String())
			if cmd.Start() == nil {
				go func() { _ = cmd.Wait() }()
			}
			return
		}
	}
}
