// Package servers names the servers of tools of an agent and starts them without a run, to list
// their tools and to find out whether they answer.
package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

// Flags name servers.
type Flags struct {
	Agent     string   `placeholder:"FILE" help:"Agent file with the servers."`
	MCP       []string `name:"mcp" placeholder:"FILE" help:"File with servers under the key mcpServers, such as .mcp.json; repeatable."`
	Service   []string `name:"tool-service" sep:"none" placeholder:"NAME=HOST:PORT" help:"Tool service, as in serve; repeatable."`
	Workspace string   `placeholder:"DIR" default:"." help:"Directory in which processes of servers work."`

	// remote leaves out servers that are programs. tokens is the folder of the tokens.
	remote    bool
	tokens    string
	namespace string
	of        *target.Target // with the records of what runs have changed; nil: those of the user's data directory
}

// RemoteServers returns flags that name the servers over HTTP of files, with a folder of tokens.
func RemoteServers(agent string, files []string, tokens string) *Flags {
	return &Flags{Agent: agent, MCP: files, Workspace: ".", remote: true, tokens: tokens}
}

// SignedIn sets the folder of the tokens and the namespace whose tokens are used.
func (c *Flags) SignedIn(tokens, namespace string) { c.tokens, c.namespace = tokens, namespace }

// RecordsOf names the mesh that has the records of the files that wait for a person.
func (c *Flags) RecordsOf(t *target.Target) { c.of = t }

// Files returns the agent with its servers.
func (c *Flags) Files(a *console.Console) (*agentfile.File, error) {
	flags := &runspec.Flags{Agent: c.Agent, MCP: c.MCP, ToolService: c.Service}
	person := acceptance.At(a, "")
	if c.of != nil {
		person = acceptance.Of(a, c.of)
	}
	flags.ReadWith(person.Read)
	file, err := flags.Files(true)
	if err == nil && len(file.Agent.GetMcp()) == 0 {
		err = errors.New("there are no servers: name a file with --agent or --mcp, or a --tool-service")
	}
	return file, err
}

// TokensOf returns the folder of the tokens of a data directory.
func TokensOf(data string) string { return filepath.Join(data, "tools", "servers", "tokens") }

// describeTime bounds how long servers may take to start.
const describeTime = 30 * time.Second

// Describe starts the servers and returns them with how they are; without their pins if unpinned
// is set.
func (c *Flags) Describe(ctx context.Context, a *console.Console, unpinned bool) ([]*harnessv1.McpServer, []*harnessv1.DescribedServer, error) {
	file, err := c.Files(a)
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
	models, err := a.Models()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "harness-mcp-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	host, err := toolhostserver.New(toolhostserver.Config{Dir: dir, Tokens: c.tokens, Withheld: models.Variables(), Logger: a.Log})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = host.Close(context.WithoutCancel(ctx)) }()
	ctx, stop := a.CancelOnSignal(ctx)
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
