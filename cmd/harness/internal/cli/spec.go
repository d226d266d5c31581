package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// specFlags define a run.
type specFlags struct {
	Model        string        `placeholder:"PROVIDER:NAME" help:"Model, such as openai:gpt-5, anthropic:claude-sonnet-5-5 or script:FILE. Default: the provider whose API key is set."`
	Effort       *effortFlag   `placeholder:"LEVEL" help:"How much the model reasons: none, minimal, low, medium, high, xhigh or max. Default: the provider's."`
	Workspace    string        `placeholder:"DIR" help:"Directory in which the agent works. Default: the current directory."`
	Agent        string        `placeholder:"FILE" help:"Agent file: instructions, model, tool policy, budgets, contract, hooks."`
	MCP          []string      `name:"mcp" placeholder:"FILE" help:"File with servers of tools under the key mcpServers, such as .mcp.json; repeatable."`
	ToolService  []string      `name:"tool-service" sep:"none" placeholder:"NAME=HOST:PORT" help:"Tool service whose tools the run has, as in serve; repeatable."`
	Contract     string        `placeholder:"FILE" help:"Contract file: what must exist before the run counts as done."`
	Graph        string        `placeholder:"FILE" help:"Graph file: tasks that sub-agents of the agent file do before the first turn."`
	Mode         string        `placeholder:"NAME" help:"Mode at the start: plan, execute, or a custom mode of the agent file. Default: execute."`
	Workflow     []string      `placeholder:"NAME" help:"Executors of a turn in order, such as repair,compaction,turn,checker,stopdecision. Default: repair,compaction,turn,stopdecision."`
	Yolo         bool          `help:"Approve every tool call. Denied tools stay denied, and commands stay in their sandbox."`
	Unconfined   bool          `help:"Let commands leave their sandbox when the agent asks for it."`
	Allow        []string      `placeholder:"TOOL" help:"Tool that needs no approval; repeatable."`
	MaxTurns     *uint32       `placeholder:"N" help:"Turns after which the run ends. Default: 50."`
	MaxToolCalls *uint32       `placeholder:"N" help:"Tool calls after which the run parks. Default: 300."`
	MaxRuns      *uint32       `placeholder:"N" help:"Runs of sub-agents that it may start, at all levels; 0 for none. Default: 64."`
	Entitlement  []string      `placeholder:"NAME" help:"Entitlement of the run, such as has_synthesis_swarm; repeatable. Only without a token, which has its own."`
	Timeout      *durationFlag `placeholder:"D" help:"Running time after which the run parks, such as 90s or 1h30m."`
}

// spec builds the spec of the run and the file with the places of its fields. Flags
// override the agent file.
func (c *specFlags) spec(ctx context.Context, a *app, goal string, local bool) (*harnessv1.RunSpec, *agentfile.File, error) {
	file, err := c.files(local)
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

// chooseTime bounds the request for a provider's list of models.
const chooseTime = 20 * time.Second

// chooseModel names the model of an agent that names none, and prints it.
func chooseModel(ctx context.Context, a *app, agent *harnessv1.AgentSpec) error {
	models, err := a.models()
	if err != nil {
		return err
	}
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, chooseTime)
	defer cancel()
	named, chosen, err := provider.Resolve(ctx, models, agent.GetModel(), a.env)
	switch {
	case errors.Is(err, provider.ErrNoModel):
		return fmt.Errorf("--model: %w, or set one in an --agent file; harness demo needs none", err)
	case errors.Is(context.Cause(ctx), errSignal):
		return errSignal
	case err != nil:
		return fmt.Errorf("--model: %w", err)
	case chosen:
		a.printNote("model %s, the catalogue's choice for this provider; --model names another", named)
	}
	agent.Model = named
	return nil
}

// setEffort replaces the effort of the agent file by the flag.
func (c *specFlags) setEffort(file *agentfile.File) {
	if c.Effort == nil {
		return
	}
	if file.Agent.Reasoning == nil {
		file.Agent.Reasoning = &harnessv1.ReasoningConfig{}
	}
	file.Agent.Reasoning.Effort = c.Effort.effort
	file.Forget("spec.agent.reasoning") // its place is the flag, not the section
}

const effortField = "spec.agent.reasoning.effort"

// openModels returns an error if a model of an agent or of its summaries cannot be opened in
// this process, or if the first one does not take the agent's effort.
func openModels(a *app, file *agentfile.File, agent *harnessv1.AgentSpec) error {
	models, err := a.models()
	if err != nil {
		return err
	}
	for i, model := range append([]string{agent.GetModel()}, agent.GetFallbackModels()...) {
		if _, _, err := provider.OpenWith(models, model, a.env); err != nil {
			return badModel(file, i, err)
		}
	}
	if err := provider.CheckEffort(models, agent.GetModel(), agent.GetReasoning().GetEffort()); err != nil {
		return unusable(file, effortField, "--effort", err)
	}
	if err := openSubAgents(a, models, file, "spec.agent.agents", agent.GetAgents()); err != nil {
		return err
	}
	for field, model := range map[string]string{
		summarizerField: file.Config.GetContext().GetSummarizer().GetModel(), qualityField: file.Config.GetQuality().GetModel(),
	} {
		if model == "" || strings.HasPrefix(model, gateway.CustomSummarizer) {
			continue
		}
		if _, _, err := provider.OpenWith(models, model, a.env); err != nil {
			return unusable(file, field, "--agent", err)
		}
	}
	return nil
}

// openSubAgents returns an error if the model of a sub-agent, at any level, cannot be opened in
// this process.
func openSubAgents(a *app, models *catalogue.Catalogue, file *agentfile.File, field string, agents []*harnessv1.SubAgent) error {
	for i, s := range agents {
		at := fmt.Sprintf("%s[%d]", field, i)
		if s.GetModel() != "" {
			if _, _, err := provider.OpenWith(models, s.GetModel(), a.env); err != nil {
				return unusable(file, at+".model", "--agent", err)
			}
		}
		if err := openSubAgents(a, models, file, at+".agents", s.GetAgents()); err != nil {
			return err
		}
	}
	return nil
}

// Fields of models that make no turns.
const (
	summarizerField = "spec.config.context.summarizer.model"
	qualityField    = "spec.config.quality.model"
)

// files reads the agent file, the contract file and the graph file, and sets the mode.
func (c *specFlags) files(local bool) (file *agentfile.File, err error) {
	file = agentfile.New()
	if c.Agent != "" {
		if file, err = agentfile.Load(c.Agent); err != nil {
			return nil, fmt.Errorf("--agent: %w", err)
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
			return nil, fmt.Errorf("--agent: %w", err)
		}
	}
	for _, path := range c.MCP {
		if err := file.LoadServers(path); err != nil {
			return nil, fmt.Errorf("--mcp: %w", err)
		}
	}
	if err := c.addToolServices(file.Agent); err != nil {
		return nil, err
	}
	if c.Contract != "" {
		if err := file.LoadContract(c.Contract); err != nil {
			return nil, fmt.Errorf("--contract: %w", err)
		}
	}
	if c.Graph != "" {
		if err := file.LoadGraph(c.Graph); err != nil {
			return nil, fmt.Errorf("--graph: %w", err)
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

// absoluteModels makes the model files of an agent file in dir absolute.
func absoluteModels(file *agentfile.File, dir string, local bool) (err error) {
	agent := file.Agent
	if agent.Model, err = absoluteModel(agent.GetModel(), dir, local); err != nil {
		return badModel(file, 0, err)
	}
	for i, model := range agent.GetFallbackModels() {
		if agent.FallbackModels[i], err = absoluteModel(model, dir, local); err != nil {
			return badModel(file, i+1, err)
		}
	}
	if summarizer := file.Config.GetContext().GetSummarizer(); summarizer != nil {
		if summarizer.Model, err = absoluteModel(summarizer.GetModel(), dir, local); err != nil {
			return unusable(file, summarizerField, "--agent", err)
		}
	}
	if judging := file.Config.GetQuality(); judging != nil {
		if judging.Model, err = absoluteModel(judging.GetModel(), dir, local); err != nil {
			return unusable(file, qualityField, "--agent", err)
		}
	}
	return nil
}

// badModel returns an error at the place of an unusable model: in the agent file,
// otherwise the flag. 0 is the first model, followed by the fallback models.
func badModel(file *agentfile.File, i int, err error) error {
	field := "spec.agent.model"
	if i > 0 {
		field = fmt.Sprintf("spec.agent.fallback_models[%d]", i-1)
	}
	return unusable(file, field, "--model", err)
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

func (c *specFlags) limits(config *harnessv1.LoopConfig) error {
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
	if b := budgets(nil, c.MaxToolCalls, nil, nil, c.MaxRuns, c.Timeout); b != nil {
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
func (c *specFlags) allow(agent *harnessv1.AgentSpec) error {
	for _, tool := range c.Allow {
		if tool != "*" && !nameForm().MatchString(tool) {
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
func (c *specFlags) workspace(local bool) (string, error) {
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
	if err != nil {
		return "", fmt.Errorf("--workspace: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("--workspace: %s is not a directory", abs)
	}
	return abs, nil
}

// absoluteModel validates a model and makes the file of a scripted or recorded one
// absolute, so that the run can be resumed from any directory.
func absoluteModel(model, dir string, local bool) (string, error) {
	if model == "" {
		return "", nil
	}
	provider, name, found := strings.Cut(model, ":")
	if !found || provider == "" {
		return "", fmt.Errorf("%q: expected PROVIDER:NAME, such as openai:gpt-5, anthropic:claude-sonnet-5-5 or script:FILE", model)
	}
	if provider != "script" && provider != "replay" {
		return model, nil
	}
	if name == "" {
		return "", fmt.Errorf("%q: missing file: expected %s:FILE", model, provider)
	}
	if !filepath.IsAbs(name) {
		abs, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		name = abs
	}
	if local {
		if info, err := os.Stat(name); err != nil {
			return "", err
		} else if info.IsDir() {
			return "", fmt.Errorf("%s is a directory", name)
		}
	}
	return provider + ":" + name, nil
}
