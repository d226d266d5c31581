package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// signInFlags name a server at which a person signs in or out.
type signInFlags struct {
	Name   string   `arg:"" name:"server" help:"Name of the server."`
	Agent  string   `placeholder:"FILE" help:"Agent file with the server."`
	MCP    []string `name:"mcp" placeholder:"FILE" help:"File with servers under the key mcpServers, such as .mcp.json; repeatable."`
	target `embed:""`
}

// subject returns the server that the flags name.
func (c *signInFlags) subject(a *app) (*harnessv1.SignInSubject, error) {
	file, err := (&specFlags{Agent: c.Agent, MCP: c.MCP}).files(c.Server == "")
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
func subjectOf(a *app, server *harnessv1.McpServer) (*harnessv1.SignInSubject, error) {
	models, err := a.models()
	if err != nil {
		return nil, err
	}
	subject := &harnessv1.SignInSubject{Server: server, Variables: map[string]string{}}
	for _, name := range mcptool.Variables([]*harnessv1.McpServer{server}) {
		if value := a.env(name); value != "" && !slices.Contains(models.Variables(), name) {
			subject.Variables[name] = value
		}
	}
	return subject, nil
}

// with connects to a mesh with a tool host, and calls do.
func (c *signInFlags) with(ctx context.Context, a *app, do func(context.Context, harnessv1.GatewayServiceClient, *harnessv1.SignInSubject) error) (int, error) {
	if err := c.check(a); err != nil {
		return follow.ExitError, err
	}
	subject, err := c.subject(a)
	if err != nil {
		return follow.ExitError, err
	}
	need := backend.Drive
	if _, err := os.Stat(c.Data); c.Server == "" && errors.Is(err, os.ErrNotExist) {
		need = backend.Own
	}
	session, err := c.connect(ctx, a, need)
	if err != nil {
		return before(err)
	}
	defer func() { a.disconnect(ctx, session) }()
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	if err := do(ctx, session.Client, subject); err != nil {
		return follow.ExitError, err
	}
	return follow.ExitDone, nil
}

// mcpLogoutCmd signs out.
type mcpLogoutCmd struct {
	signInFlags `embed:""`
}

func (c *mcpLogoutCmd) run(ctx context.Context, a *app) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient, subject *harnessv1.SignInSubject) error {
		r, err := client.SignOut(ctx, &harnessv1.SignOutRequest{Namespace: c.Namespace, Subject: subject})
		if err != nil {
			return err
		}
		text := "signed out of " + c.Name
		if !r.GetRemoved() {
			text = "not signed in at " + c.Name
		}
		_, err = fmt.Fprintln(a.out, text)
		return err
	})
}

// mcpLoginCmd signs in.
type mcpLoginCmd struct {
	signInFlags `embed:""`
	NoBrowser   bool          `help:"Print the address only, and open no browser."`
	Port        uint16        `placeholder:"N" help:"Port of this machine to which the browser returns, for a client that is registered with it. Default: a free one."`
	Wait        *durationFlag `placeholder:"D" help:"How long to wait for the browser. Default and most: 10m."`
}

// loginTime is how long a sign-in is valid.
const loginTime = 10 * time.Minute

func (c *mcpLoginCmd) run(ctx context.Context, a *app) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient, subject *harnessv1.SignInSubject) error {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(c.Port))))
		if err != nil {
			return fmt.Errorf("--port: %w", err)
		}
		defer listener.Close()
		started, err := client.StartSignIn(ctx, &harnessv1.StartSignInRequest{
			Namespace: c.Namespace, Subject: subject, RedirectUri: "http://" + listener.Addr().String() + "/callback",
		})
		if err != nil {
			return err
		}
		start := started.GetStart()
		fmt.Fprintf(a.err, "open this address in a browser, and agree:\n\n%s\n\nIf the browser cannot return here, paste the address of its last page, or the code that it shows.\n", render.Clean(start.GetAuthorizationUrl()))
		if !c.NoBrowser && a.interactive() {
			openBrowser(a, start.GetAuthorizationUrl())
		}
		wait := loginTime
		if c.Wait != nil {
			wait = min(wait, c.Wait.d)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("no browser has returned within %v: begin again", wait))
		defer cancel()
		returned, err := awaitReturn(ctx, a, listener, start.GetState())
		if err != nil {
			return err
		}
		returned.LedgerId = start.GetLedgerId()
		finished, err := client.FinishSignIn(context.WithoutCancel(ctx), &harnessv1.FinishSignInRequest{Namespace: c.Namespace, Returned: returned})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "signed in at %s%s\n", c.Name, validText(finished.GetState()))
		return err
	})
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
func awaitReturn(ctx context.Context, a *app, listener net.Listener, state string) (*harnessv1.SignInReturn, error) {
	returns := make(chan *harnessv1.SignInReturn, 2)
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
	go func() { // it ends with the process
		for lines := bufio.NewScanner(a.in); lines.Scan(); {
			text := strings.TrimSpace(lines.Text())
			if text == "" {
				continue
			}
			r, err := pasted(text, state)
			if err != nil {
				fmt.Fprintln(a.err, err)
				continue
			}
			select {
			case returns <- r:
			default:
			}
		}
	}()
	select {
	case r := <-returns:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
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
func openBrowser(a *app, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return
	}
	for _, program := range []string{"xdg-open", "open"} {
		if program == "xdg-open" && a.env("DISPLAY") == "" && a.env("WAYLAND_DISPLAY") == "" {
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
