// Package mcp is the verbs for servers of tools: mcp list, lock, login and logout, and mcp serve,
// which serves runs over MCP.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/servers"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewaymcp"
)

// Cmd groups the commands for servers of tools.
type Cmd struct {
	List   mcpListCmd   `cmd:"" help:"Start the servers of an agent, and list their tools as a run has them."`
	Lock   mcpLockCmd   `cmd:"" help:"Pin the present definitions of the tools, next to the agent file."`
	Login  mcpLoginCmd  `cmd:"" help:"Sign in at a server of tools, for all runs of the namespace."`
	Logout mcpLogoutCmd `cmd:"" help:"Sign out of a server of tools, and remove its token."`
	Serve  mcpServeCmd  `cmd:"" help:"Serve runs over MCP on stdin and stdout: start, wait, answer, cancel."`
}

// mcpListCmd lists tools.
type mcpListCmd struct {
	servers.Flags `embed:""`
	target.Target `embed:""`
	Output        string `enum:"text,json" default:"text" help:"Format: a table (text) or one object (json)."`
}

func (c *mcpListCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	c.RecordsOf(&c.Target)
	if c.Server != "" {
		return c.signIns(ctx, a)
	}
	c.SignedIn(servers.TokensOf(c.Data), c.Namespace)
	servers, described, err := c.Describe(ctx, a, false)
	if err != nil {
		return exit.Error, err
	}
	selection := mcptool.Select(mcptool.Input{Servers: servers, Described: described})
	code := exit.Done
	type row struct {
		Server  string                  `json:"server"`
		State   string                  `json:"state"`
		Message string                  `json:"message,omitempty"`
		Tools   []string                `json:"tools"`
		LeftOut []*harnessv1.McpLeftOut `json:"left_out,omitempty"`
	}
	rows := make([]row, len(selection.Servers))
	for i, s := range selection.Servers {
		rows[i] = row{s.GetServer(), strings.ToLower(strings.TrimPrefix(s.GetState().String(), "MCP_SERVER_STATE_")), s.GetMessage(), []string{}, s.GetLeftOut()}
		for _, t := range selection.Tools.GetTools() {
			if t.GetServer() == s.GetServer() {
				rows[i].Tools = append(rows[i].Tools, t.GetSpec().GetName())
			}
		}
		if s.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY {
			code = exit.Error
		}
	}
	if c.Output == "json" {
		return code, json.NewEncoder(a.Out).Encode(rows)
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", console.OneLine(r.Server), strings.ReplaceAll(r.State, "_", " "), console.OneLine(r.Message))
		for _, name := range r.Tools {
			fmt.Fprintf(w, "  %s\n", console.OneLine(name))
		}
		for _, l := range r.LeftOut {
			fmt.Fprintf(w, "  without %s: %s\n", console.OneLine(l.GetTool()), console.OneLine(l.GetReason()))
		}
	}
	fmt.Fprintf(w, "%d tokens of definitions\n", selection.Tokens)
	return code, w.Flush()
}

// signIns lists the sign-ins of a mesh, whose tool host starts no server for that.
func (c *mcpListCmd) signIns(ctx context.Context, a *console.Console) (int, error) {
	file, err := c.Files(a)
	if err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Store)
	if err != nil {
		return console.Before(err)
	}
	defer func() { target.Disconnect(ctx, a, session) }()
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	type row struct {
		Server   string `json:"server"`
		SignedIn bool   `json:"signed_in"`
		Message  string `json:"message,omitempty"`
		ToolHost string `json:"tool_host,omitempty"` // of several
	}
	rows := []row{}
	for _, server := range file.Agent.GetMcp() {
		if server.GetUrl() == "" {
			continue
		}
		subject, err := subjectOf(a, server)
		if err != nil {
			return exit.Error, err
		}
		r, err := session.Client.GetSignIn(ctx, &harnessv1.GetSignInRequest{Namespace: c.Namespace, Subject: subject})
		switch {
		case status.Code(err) == codes.FailedPrecondition:
			rows = append(rows, row{server.GetName(), false, status.Convert(err).Message(), ""})
		case err != nil:
			return exit.Error, err
		case len(r.GetHosts()) > 1:
			for _, h := range r.GetHosts() {
				signedIn, message := signInText(server.GetName(), h.GetState())
				if h.GetError() != "" {
					signedIn, message = false, "it is not known: "+h.GetError()
				}
				rows = append(rows, row{server.GetName(), signedIn, message, h.GetInstance()})
			}
		default:
			signedIn, message := signInText(server.GetName(), r.GetState())
			rows = append(rows, row{server.GetName(), signedIn, message, ""})
		}
	}
	if c.Output == "json" {
		return exit.Done, json.NewEncoder(a.Out).Encode(rows)
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		state := "not signed in"
		if r.SignedIn {
			state = "signed in"
		}
		if r.ToolHost != "" {
			state += " at tool host " + console.OneLine(r.ToolHost)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", console.OneLine(r.Server), state, console.OneLine(r.Message))
	}
	return exit.Done, w.Flush()
}

// signInText returns whether a sign-in is valid, and what people should know of it.
func signInText(server string, s *harnessv1.SignInState) (signedIn bool, message string) {
	switch {
	case len(s.GetLacked()) > 0:
		return s.GetSignedIn(), "a call lacked rights: " + strings.Join(s.GetLacked(), ", ") + "; harness mcp login " + server + " requests them"
	case s.GetSignedIn():
		return true, strings.TrimPrefix(validText(s), ", ")
	}
	return false, "harness mcp login " + server + " signs in, if the server requires it"
}

// mcpLockCmd pins definitions.
type mcpLockCmd struct {
	servers.Flags `embed:""`
}

func (c *mcpLockCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if c.Agent == "" {
		return exit.Error, errors.New("--agent: missing: the pins lie next to the agent file")
	}
	if data, err := backend.DefaultData(a.Env); err == nil {
		c.SignedIn(servers.TokensOf(data), "")
	}
	servers, described, err := c.Describe(ctx, a, true)
	if err != nil {
		return exit.Error, err
	}
	pins := map[string]map[string]string{}
	for i, d := range described {
		if !d.GetListed() {
			return exit.Error, fmt.Errorf("server %s: %s", d.GetServer(), d.GetMessage())
		}
		pins[servers[i].GetName()] = map[string]string{}
		for _, t := range d.GetTools() {
			pins[servers[i].GetName()][t.GetTool()] = t.GetDigest()
		}
	}
	data, err := json.MarshalIndent(pins, "", "  ")
	if err != nil {
		return exit.Error, err
	}
	path := agentfile.LockPath(c.Agent)
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return exit.Error, err
	}
	fmt.Fprintln(a.Out, path)
	return exit.Done, nil
}

// mcpServeCmd serves runs over MCP.
type mcpServeCmd struct {
	runspec.Flags `embed:""`
	target.Target `embed:""`
	Approve       bool `help:"Let the client, which is a model, approve calls of tools."`
}

func (c *mcpServeCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Target.Check(a); err != nil {
		return exit.Error, err
	}
	person := acceptance.Of(a, &c.Target)
	c.ReadWith(person.Read)
	spec, _, err := c.Spec(ctx, a, "", c.Server == "")
	if err != nil {
		return console.Before(person.Err(err))
	}
	person.Register()
	c.Lasts()
	session, err := c.Connect(ctx, a, backend.Own)
	if err != nil {
		return console.Before(err)
	}
	defer func() { target.Disconnect(ctx, a, session) }()
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	err = gatewaymcp.Serve(ctx, gatewaymcp.Config{
		Gateway: session.Client, Approves: func(context.Context) bool { return c.Approve }, Spec: spec,
		Fixed: c.Agent != "" || c.Workspace != "", Namespace: c.Namespace, Version: a.Build(),
	}, io.NopCloser(a.In), keepOpen{a.Out})
	if err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}

// keepOpen is an output that is not closed.
type keepOpen struct{ io.Writer }

// Close does nothing.
func (keepOpen) Close() error { return nil }
