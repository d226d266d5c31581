// Package runspec builds the spec of a run from flags and files. Flags override the agent file.
// What cannot work in this process, such as a model without a key, is refused before anything is
// stored, with its place in the file or the flag.
package runspec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Flags define a run.
type Flags struct {
	Model        string            `placeholder:"PROVIDER:NAME" help:"Model, such as openai:gpt-5, anthropic:claude-sonnet-5-5 or script:FILE. Default: the provider whose API key is set."`
	Effort       *Effort           `placeholder:"LEVEL" help:"How much the model reasons: none, minimal, low, medium, high, xhigh or max. Default: the provider's."`
	Workspace    string            `placeholder:"DIR" help:"Directory in which the agent works. Default: the current directory."`
	Agent        string            `placeholder:"FILE" help:"Agent file: instructions, model, tool policy, budgets, contract, hooks."`
	MCP          []string          `name:"mcp" placeholder:"FILE" help:"File with servers of tools under the key mcpServers, such as .mcp.json; repeatable."`
	ToolService  []string          `name:"tool-service" sep:"none" placeholder:"NAME=HOST:PORT" help:"Tool service whose tools the run has, as in serve; repeatable."`
	Contract     string            `placeholder:"FILE" help:"Contract file: what must exist before the run counts as done."`
	Graph        string            `placeholder:"FILE" help:"Graph file: tasks that sub-agents of the agent file do before the first turn."`
	Mode         string            `placeholder:"NAME" help:"Mode at the start: plan, execute, or a custom mode of the agent file. Default: execute."`
	Workflow     []string          `placeholder:"NAME" help:"Executors of a turn in order, such as repair,compaction,turn,checker,stopdecision. Default: repair,compaction,turn,stopdecision."`
	Yolo         bool              `help:"Approve every tool call. Denied tools stay denied, and commands stay in their sandbox."`
	Unconfined   bool              `help:"Let commands leave their sandbox when the agent asks for it."`
	Allow        []string          `placeholder:"TOOL" help:"Tool that needs no approval; repeatable."`
	Quality      bool              `help:"Judge the work of the run, as quality.enabled of the agent file does."`
	MaxTurns     *uint32           `placeholder:"N" help:"Turns after which the run ends. Default: 50."`
	MaxToolCalls *uint32           `placeholder:"N" help:"Tool calls after which the run parks. Default: 300."`
	MaxRuns      *uint32           `placeholder:"N" help:"Runs of sub-agents that it may start, at all levels; 0 for none. Default: 64."`
	Entitlement  []string          `placeholder:"NAME" help:"Entitlement of the run, such as has_synthesis_swarm; repeatable. Only without a token, which has its own."`
	Timeout      *console.Duration `placeholder:"D" help:"Running time after which the run parks, such as 90s or 1h30m."`

	read agentfile.Reader
}

// ReadWith sets what reads the files that the flags name, and the files that these name.
func (c *Flags) ReadWith(read agentfile.Reader) { c.read = read }

// Spec builds the spec of the run and the file with the places of its fields. Flags
// override the agent file.
func (c *Flags) Spec(ctx context.Context, a *console.Console, goal string, local bool) (*harnessv1.RunSpec, *agentfile.File, error) {
	file, err := c.Files(local)
	if err != nil {
		return nil, nil, err
	}
	agent, config := file.Agent, file.Config
	if err := c.limits(config); err != nil {
		return nil, nil, err
	}
	if err := c.allow(agent); err != nil {
		return nil, nil, err
	}
	if c.Model != "" {
		model, err := absoluteModel(c.Model, ".", local)
		if err != nil {
			return nil, nil, fmt.Errorf("--model: %w", err)
		}
		agent.Model = model
	}
	c.setEffort(file)
	if local {
		if err := chooseModel(ctx, a, agent); err != nil {
			return nil, nil, err
		}
		if err := openModels(a, file, agent); err != nil {
			return nil, nil, err
		}
	}
	workspace, err := c.workspace(local)
	if err != nil {
		return nil, nil, err
	}
	return &harnessv1.RunSpec{
		Goal: content.Inline(goal), Agent: agent, Workspace: workspace, Workflow: c.Workflow, Config: config,
		ClientTools: file.ClientTools, Contract: file.Contract, OutputSchema: file.OutputSchema, Task: file.Task, Graph: file.Graph,
	}, file, nil
}

// setEffort replaces the effort of the agent file by the flag.
func (c *Flags) setEffort(file *agentfile.File) {
	if c.Effort == nil {
		return
	}
	if file.Agent.Reasoning == nil {
		file.Agent.Reasoning = &harnessv1.ReasoningConfig{}
	}
	file.Agent.Reasoning.Effort = c.Effort.effort
	file.Forget("spec.agent.reasoning") // its place is the flag, not the section
}

// Files reads the agent file, the contract file and the graph file, and sets the mode.
func (c *Flags) Files(local bool) (file *agentfile.File, err error) {
	file = agentfile.New()
	if c.read == nil {
		c.read = agentfile.Read
	}
	file.ReadWith(c.read)
	if c.Agent != "" {
		if file, err = agentfile.Load(c.Agent, c.read); err != nil {
			return nil, console.FileError("--agent", err)
		}
		if c.Model != "" { // the flag overrides the file
			file.Agent.Model = ""
			file.Forget("spec.agent.model")
		}
		if err := absoluteModels(file, filepath.Dir(c.Agent), local); err != nil {
			return nil, err
		}
	}
	if c.Agent != "" {
		if err := file.LoadLock(c.Agent); err != nil {
			return nil, console.FileError("--agent", err)
		}
	}
	for _, path := range c.MCP {
		if err := file.LoadServers(path); err != nil {
			return nil, console.FileError("--mcp", err)
		}
	}
	if err := c.addToolServices(file.Agent); err != nil {
		return nil, err
	}
	if c.Contract != "" {
		if err := file.LoadContract(c.Contract); err != nil {
			return nil, console.FileError("--contract", err)
		}
	}
	if c.Graph != "" {
		if err := file.LoadGraph(c.Graph); err != nil {
			return nil, console.FileError("--graph", err)
		}
	}
	if c.Mode != "" {
		if !mode.Exists(c.Mode, file.Agent.GetModes()) {
			return nil, fmt.Errorf("--mode: unknown mode %q: must be one of %s", c.Mode, strings.Join(mode.Names(file.Agent.GetModes()), ", "))
		}
		file.Agent.Mode = c.Mode
		file.Forget("spec.agent.mode")
	}
	return file, nil
}

// unusable returns an error at the place of a field in the agent file, otherwise at the
// flag that sets it.
func unusable(file *agentfile.File, field, flag string, err error) error {
	refusal := fault.Invalid(field, "%v", err)
	if located := file.Locate(refusal); !errors.Is(located, refusal) {
		return fmt.Errorf("--agent: %w", located)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (c *Flags) limits(config *harnessv1.LoopConfig) error {
	if c.MaxTurns != nil {
		if *c.MaxTurns == 0 {
			return errors.New("--max-turns: 0: expected at least 1")
		}
		if config.Stop == nil {
			config.Stop = &harnessv1.StopConfig{}
		}
		config.Stop.MaxTurns = c.MaxTurns
	}
	if c.MaxToolCalls != nil && *c.MaxToolCalls == 0 {
		return errors.New("--max-tool-calls: 0: expected at least 1")
	}
	if b := Budgets(nil, c.MaxToolCalls, nil, nil, c.MaxRuns, c.Timeout); b != nil {
		if config.Budgets == nil {
			config.Budgets = &harnessv1.Budgets{}
		}
		if b.ToolCalls != nil {
			config.Budgets.ToolCalls = b.ToolCalls
		}
		if b.Runs != nil {
			config.Budgets.Runs = b.Runs
		}
		if b.WallClock != nil {
			config.Budgets.WallClock = b.WallClock
		}
	}
	if c.Yolo {
		if config.Tools == nil {
			config.Tools = &harnessv1.ToolConfig{}
		}
		yolo := true
		config.Tools.Yolo = &yolo
	}
	if c.Quality {
		if config.Quality == nil {
			config.Quality = &harnessv1.QualityConfig{}
		}
		enabled := true
		config.Quality.Enabled = &enabled
	}
	if c.Unconfined {
		if config.Sandbox == nil {
			config.Sandbox = &harnessv1.SandboxConfig{}
		}
		config.Sandbox.Unconfined = true
	}
	return nil
}

// allow adds rules for the tools that need no approval. Allowing a tool that the agent
// file denies by its name is an error; a rule that denies some of its calls is not.
func (c *Flags) allow(agent *harnessv1.AgentSpec) error {
	for _, tool := range c.Allow {
		if tool != "*" && !console.NameForm().MatchString(tool) {
			return fmt.Errorf("--allow: %q must be the name of a tool", tool)
		}
		for _, rule := range agent.GetTools() {
			denies := rule.GetName() == tool && rule.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_DENY
			if some := rule.GetWhen() + rule.GetPattern() + rule.GetPrefix() + rule.GetPath() + rule.GetHost(); denies && some == "" {
				return fmt.Errorf("--allow: the agent file denies %s: remove one of them", tool)
			}
		}
	}
	for _, tool := range c.Allow {
		agent.Tools = append(agent.Tools, &harnessv1.ToolRule{Name: tool, Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW})
	}
	return nil
}

// workspace returns the absolute path; a local one must be a directory.
func (c *Flags) workspace(local bool) (string, error) {
	dir := c.Workspace
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--workspace: %w", err)
	}
	if !local {
		return abs, nil
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--workspace: %s does not exist: create it, or name another folder", abs)
	}
	if err != nil {
		return "", fmt.Errorf("--workspace: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("--workspace: %s is not a directory", abs)
	}
	return abs, nil
}
