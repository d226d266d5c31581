package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewaymcp"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

// mcpCmd groups the commands for servers of tools.
type mcpCmd struct {
	List   mcpListCmd   `cmd:"" help:"Start the servers of an agent, and list their tools as a run has them."`
	Lock   mcpLockCmd   `cmd:"" help:"Pin the present definitions of the tools, next to the agent file."`
	Login  mcpLoginCmd  `cmd:"" help:"Sign in at a server of tools, for all runs of the namespace."`
	Logout mcpLogoutCmd `cmd:"" help:"Sign out of a server of tools, and remove its token."`
	Serve  mcpServeCmd  `cmd:"" help:"Serve runs over MCP on stdin and stdout: start, wait, answer, cancel."`
}

// serverFlags name servers.
type serverFlags struct {
	Agent     string   `placeholder:"FILE" help:"Agent file with the servers."`
	MCP       []string `name:"mcp" placeholder:"FILE" help:"File with servers under the key mcpServers, such as .mcp.json; repeatable."`
	Service   []string `name:"tool-service" sep:"none" placeholder:"NAME=HOST:PORT" help:"Tool service, as in serve; repeatable."`
	Workspace string   `placeholder:"DIR" default:"." help:"Directory in which processes of servers work."`

	// remote leaves out servers that are programs. tokens is the folder of the tokens.
	remote    bool
	tokens    string
	namespace string
}

// remoteServers returns flags that name the servers over HTTP of files, with a folder of tokens.
func remoteServers(agent string, files []string, tokens string) *serverFlags {
	return &serverFlags{Agent: agent, MCP: files, Workspace: ".", remote: true, tokens: tokens}
}

// signedIn sets the folder of the tokens and the namespace whose tokens are used.
func (c *serverFlags) signedIn(tokens, namespace string) { c.tokens, c.namespace = tokens, namespace }

// files returns the agent with its servers.
func (c *serverFlags) files() (*agentfile.File, error) {
	file, err := (&specFlags{Agent: c.Agent, MCP: c.MCP, ToolService: c.Service}).files(true)
	if err == nil && len(file.Agent.GetMcp()) == 0 {
		err = errors.New("there are no servers: name a file with --agent or --mcp, or a --tool-service")
	}
	return file, err
}

// tokensOf returns the folder of the tokens of a data directory.
func tokensOf(data string) string { return filepath.Join(data, "tools", "servers", "tokens") }

// describeTime bounds how long servers may take to start.
const describeTime = 30 * time.Second

// describe starts the servers and returns them with how they are; without their pins if unpinned
// is set.
func (c *serverFlags) describe(ctx context.Context, a *app, unpinned bool) ([]*harnessv1.McpServer, []*harnessv1.DescribedServer, error) {
	file, err := c.files()
	if err != nil {
		return nil, nil, err
	}
	servers := file.Agent.GetMcp()
	if c.remote {
		servers = slices.DeleteFunc(slices.Clone(servers), func(s *harnessv1.McpServer) bool { return s.GetUrl() == "" })
	}
	if unpinned {
		for _, s := range servers {
			s.Pins = nil
		}
	}
	if len(servers) == 0 {
		return nil, nil, nil
	}
	workspace, err := filepath.Abs(c.Workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("--workspace: %w", err)
	}
	models, err := a.models()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "harness-mcp-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	host, err := toolhostserver.New(toolhostserver.Config{Dir: dir, Tokens: c.tokens, Withheld: models.Variables(), Logger: a.log})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = host.Close(context.WithoutCancel(ctx)) }()
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	r, err := host.DescribeServers(ctx, &harnessv1.DescribeServersRequest{
		Namespace: cmp.Or(c.namespace, "default"), RunId: "list", FirstSequence: 1, Workspace: workspace, Servers: servers, Sandbox: file.Config.GetSandbox(), Local: true,
		Wait: durationpb.New(describeTime),
	})
	if err != nil {
		return nil, nil, err
	}
	return servers, r.GetServers(), nil
}

// mcpListCmd lists tools.
type mcpListCmd struct {
	serverFlags `embed:""`
	target      `embed:""`
	Output      string `enum:"text,json" default:"text" help:"Format: a table (text) or one object (json)."`
}

func (c *mcpListCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	if c.Server != "" {
		return c.signIns(ctx, a)
	}
	c.signedIn(tokensOf(c.Data), c.Namespace)
	servers, described, err := c.describe(ctx, a, false)
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
		return code, json.NewEncoder(a.out).Encode(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(r.Server), strings.ReplaceAll(r.State, "_", " "), oneLine(r.Message))
		for _, name := range r.Tools {
			fmt.Fprintf(w, "  %s\n", oneLine(name))
		}
		for _, l := range r.LeftOut {
			fmt.Fprintf(w, "  without %s: %s\n", oneLine(l.GetTool()), oneLine(l.GetReason()))
		}
	}
	fmt.Fprintf(w, "%d tokens of definitions\n", selection.Tokens)
	return code, w.Flush()
}

// signIns lists the sign-ins of a mesh, whose tool host starts no server for that.
func (c *mcpListCmd) signIns(ctx context.Context, a *app) (int, error) {
	file, err := c.files()
	if err != nil {
		return exit.Error, err
	}
	session, err := c.connect(ctx, a, backend.Store)
	if err != nil {
		return before(err)
	}
	defer func() { disconnect(ctx, a, session) }()
	ctx, stop := a.cancelOnSignal(ctx)
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
		return exit.Done, json.NewEncoder(a.out).Encode(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		state := "not signed in"
		if r.SignedIn {
			state = "signed in"
		}
		if r.ToolHost != "" {
			state += " at tool host " + oneLine(r.ToolHost)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(r.Server), state, oneLine(r.Message))
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
	serverFlags `embed:""`
}

func (c *mcpLockCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Agent == "" {
		return exit.Error, errors.New("--agent: missing: the pins lie next to the agent file")
	}
	if data, err := backend.DefaultData(a.env); err == nil {
		c.signedIn(tokensOf(data), "")
	}
	servers, described, err := c.describe(ctx, a, true)
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
	fmt.Fprintln(a.out, path)
	return exit.Done, nil
}

// mcpServeCmd serves runs over MCP.
type mcpServeCmd struct {
	specFlags `embed:""`
	target    `embed:""`
	Approve   bool `help:"Let the client, which is a model, approve calls of tools."`
}

func (c *mcpServeCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.target.check(a); err != nil {
		return exit.Error, err
	}
	spec, _, err := c.spec(ctx, a, "", c.Server == "")
	if err != nil {
		return before(err)
	}
	session, err := c.connect(ctx, a, backend.Own)
	if err != nil {
		return before(err)
	}
	defer func() { disconnect(ctx, a, session) }()
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	err = gatewaymcp.Serve(ctx, gatewaymcp.Config{
		Gateway: session.Client, Approves: func(context.Context) bool { return c.Approve }, Spec: spec,
		Fixed: c.Agent != "" || c.Workspace != "", Namespace: c.Namespace, Version: a.build(),
	}, io.NopCloser(a.in), keepOpen{a.out})
	if err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}

// keepOpen is an output that is not closed.
type keepOpen struct{ io.Writer }

// Close does nothing.
func (keepOpen) Close() error { return nil }
