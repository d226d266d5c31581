package access

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// checkRights refuses a request for which the token lacks a right, and a start whose
// workspace, folders or models are not among those of the token. It applies to every
// message of a stream.
func checkRights(c Caller, req any) error {
	switch r := req.(type) {
	case *harnessv1.StartRunRequest:
		return checkStart(c, r.GetSpec())
	case *harnessv1.SendInputRequest:
		if r.GetApproval() != nil && !c.has(Approve) {
			return lacks(Approve, "approval", "answers a call that waits for a person")
		}
		return checkModels(c, changedModel(req))
	case *harnessv1.SetPromptRequest:
		if !c.has(Prompts) {
			return lacks(Prompts, "id", "changes the prompts of all runs of the namespace")
		}
	case *harnessv1.ResetProfileRequest:
		if !c.has(Prompts) {
			return lacks(Prompts, "profile", "forgets what all runs of the profile have shown")
		}
		return checkProfile(c, "profile", r.GetProfile())
	case *harnessv1.GetProfileRequest:
		return checkProfile(c, "profile", r.GetProfile())
	case *harnessv1.StartSignInRequest, *harnessv1.FinishSignInRequest, *harnessv1.SignOutRequest:
		if !c.has(Approve) {
			return lacks(Approve, "namespace", "signs all runs of the namespace in or out at a server of tools")
		}
	case *harnessv1.ResumeRunRequest:
		return checkModels(c, changedModel(req))
	case *harnessv1.RunRequest:
		if r.GetApproval() != nil && !c.has(Approve) {
			return lacks(Approve, "approval", "answers a call that waits for a person")
		}
		if err := checkModels(c, changedModel(req)); err != nil {
			return err
		}
		return checkStart(c, r.GetStart().GetSpec())
	}
	return nil
}

func checkStart(c Caller, spec *harnessv1.RunSpec) error {
	if spec == nil {
		return nil
	}
	if err := checkModels(c, modelsOf(spec)); err != nil {
		return err
	}
	for _, check := range []func(Caller, *harnessv1.RunSpec) error{checkFolders, checkCommands, checkPrograms, checkApprovals, checkLeaves, checkVariables} {
		if err := check(c, spec); err != nil {
			return err
		}
	}
	return nil
}

// checkFolders checks the workspace, and the folders that commands reach outside of it.
func checkFolders(c Caller, spec *harnessv1.RunSpec) error {
	if c.Roots == nil {
		return nil
	}
	if !withinAny(c.Roots, spec.GetWorkspace()) {
		return outside(c, "spec.workspace", spec.GetWorkspace())
	}
	for i, folder := range spec.GetAgent().GetSkills() {
		if !withinAny(c.Roots, folder) {
			return outside(c, "spec.agent.skills["+strconv.Itoa(i)+"]", folder)
		}
	}
	if err := checkProfile(c, "spec.task.profile", spec.GetTask().GetProfile()); err != nil {
		return err
	}
	box := spec.GetConfig().GetSandbox()
	for field, folders := range map[string][]string{"read": box.GetRead(), "write": box.GetWrite()} {
		for i, folder := range folders {
			if !withinAny(c.Roots, folder) {
				return outside(c, "spec.config.sandbox."+field+"["+strconv.Itoa(i)+"]", folder)
			}
		}
	}
	if box.GetUnconfined() {
		return denied("spec.config.sandbox.unconfined", "roots", "the token is for "+strings.Join(c.Roots, ", ")+" only, and unconfined commands reach more: leave it out")
	}
	return nil
}

// checkProfile refuses the profile of a workspace outside of the roots. A profile whose name is
// no path belongs to the namespace.
func checkProfile(c Caller, field, profile string) error {
	if c.Roots == nil || !filepath.IsAbs(profile) || withinAny(c.Roots, profile) {
		return nil
	}
	return outside(c, field, profile)
}

func outside(c Caller, field, path string) error {
	return denied(field, "roots", fmt.Sprintf("%q is not within the folders of the token: it is for %s", path, strings.Join(c.Roots, ", ")))
}

// withinAny reports whether a path is one of the roots or below one. Links are resolved
// if the path exists on this machine; the tool host, which may be on another, resolves
// them again and confines its tools to the result.
func withinAny(roots []string, path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	for _, root := range roots {
		if err != nil && contains(root, path) {
			return true
		}
		if target, missing := filepath.EvalSymlinks(root); err == nil && missing == nil && contains(target, resolved) {
			return true
		}
	}
	return false
}

func contains(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// namedModel is a model in a request.
type namedModel struct{ field, model string }

// modelsOf returns every model of a run.
func modelsOf(spec *harnessv1.RunSpec) []namedModel {
	models := []namedModel{
		{"spec.agent.model", spec.GetAgent().GetModel()},
		{"spec.config.context.summarizer.model", spec.GetConfig().GetContext().GetSummarizer().GetModel()},
		{"spec.config.quality.model", spec.GetConfig().GetQuality().GetModel()},
	}
	for i, model := range spec.GetAgent().GetFallbackModels() {
		models = append(models, namedModel{"spec.agent.fallback_models[" + strconv.Itoa(i) + "]", model})
	}
	forSubAgents(spec, func(field string, a *harnessv1.SubAgent) {
		models = append(models, namedModel{field + ".model", a.GetModel()})
	})
	return models
}

// forSubAgents visits the sub-agents of a run, at all levels.
func forSubAgents(spec *harnessv1.RunSpec, visit func(field string, a *harnessv1.SubAgent)) {
	var all func(string, []*harnessv1.SubAgent)
	all = func(field string, agents []*harnessv1.SubAgent) {
		for i, a := range agents {
			at := field + "[" + strconv.Itoa(i) + "]"
			visit(at, a)
			all(at+".agents", a.GetAgents())
		}
	}
	all("spec.agent.agents", spec.GetAgent().GetAgents())
}

// scripted are the providers whose models are files of the worker.
var scripted = []string{"script", "replay"}

// changedModel returns the model that a request changes a run to, if any.
func changedModel(req any) []namedModel {
	switch r := req.(type) {
	case *harnessv1.SendInputRequest:
		return []namedModel{{"model_change.model", r.GetModelChange().GetModel()}}
	case *harnessv1.ResumeRunRequest:
		return []namedModel{{"model", r.GetModel()}}
	case *harnessv1.RunRequest:
		return []namedModel{{"model_change.model", r.GetModelChange().GetModel()}, {"resume.model", r.GetResume().GetModel()}}
	}
	return nil
}

func checkModels(c Caller, models []namedModel) error {
	for _, m := range models {
		if m.model == "" {
			continue
		}
		provider, _, _ := strings.Cut(m.model, ":")
		switch {
		case slices.Contains(scripted, provider) && !c.has(Scripts):
			return lacks(Scripts, m.field, "is a scripted model")
		case c.Providers != nil && !slices.Contains(c.Providers, provider):
			return denied(m.field, "providers", fmt.Sprintf("the token is not for models of %q: it is for %s", provider, strings.Join(c.Providers, ", ")))
		}
	}
	return nil
}

// runCommand is the tool that runs commands.
const runCommand = "run_command"

// checkCommands refuses runs that may have run_command.
func checkCommands(c Caller, spec *harnessv1.RunSpec) error {
	if c.has(Commands) || deniesCommands(spec.GetAgent().GetTools()) {
		return nil
	}
	return lacks(Commands, "spec.agent.tools", "lets the run use "+runCommand+" (end the list with {name: "+runCommand+", policy: deny} for a run without it)")
}

// deniesCommands reports whether the policy denies every call of run_command: the last
// rule for it without a condition does, and each later one denies too.
func deniesCommands(rules []*harnessv1.ToolRule) bool {
	for _, rule := range slices.Backward(rules) {
		if !tool.Matches(rule.GetName(), runCommand) {
			continue
		}
		if rule.GetPolicy() != harnessv1.ToolDecision_TOOL_DECISION_DENY {
			return false
		}
		if rule.GetWhen()+rule.GetPattern()+rule.GetPrefix()+rule.GetPath()+rule.GetHost() == "" {
			return true
		}
	}
	return false
}

// checkPrograms refuses hooks and checks that are commands.
func checkPrograms(c Caller, spec *harnessv1.RunSpec) error {
	for i, hook := range spec.GetAgent().GetHooks() {
		if hook.GetCommand() != "" && !c.has(Hooks) {
			return lacks(Hooks, "spec.agent.hooks["+strconv.Itoa(i)+"].command", "is a command")
		}
	}
	for i, server := range spec.GetAgent().GetMcp() {
		if server.GetCommand() != "" && !c.has(Commands) {
			return lacks(Commands, "spec.agent.mcp["+strconv.Itoa(i)+"].command", "is a command")
		}
	}
	err := checkChecks(c, "spec.contract", spec.GetContract())
	forSubAgents(spec, func(field string, a *harnessv1.SubAgent) {
		if err == nil {
			err = checkChecks(c, field+".contract", a.GetContract())
		}
	})
	return err
}

// checkChecks refuses checks of a contract that are commands.
func checkChecks(c Caller, field string, contract *harnessv1.TaskContract) error {
	if contract.GetStored() != nil && !c.has(Checks) {
		return lacks(Checks, field+".stored", "may have checks that are commands")
	}
	for i, output := range contract.GetRequiredOutputs() {
		p := output.GetPredicate()
		if (p.GetCommand() != "" || p.GetType() == harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS) && !c.has(Checks) {
			return lacks(Checks, field+".required_outputs["+strconv.Itoa(i)+"].predicate.command", "is a command")
		}
	}
	return nil
}

// checkApprovals refuses runs in which calls that ask are approved in advance.
func checkApprovals(c Caller, spec *harnessv1.RunSpec) error {
	switch {
	case c.has(Approve):
		return nil
	case spec.GetConfig().GetTools().GetYolo():
		return lacks(Approve, "spec.config.tools.yolo", "approves every call in advance")
	case spec.GetConfig().GetSandbox().GetUnconfined():
		return lacks(Approve, "spec.config.sandbox.unconfined", "approves unconfined commands in advance")
	}
	return nil
}

// checkLeaves refuses runs of which something is executed outside of the sandbox.
func checkLeaves(c Caller, spec *harnessv1.RunSpec) error {
	field := sandbox.Leaves(spec)
	switch {
	case field == "" || c.leaves():
		return nil
	case c.Roots != nil:
		return denied(field, "roots", "the token is for "+strings.Join(c.Roots, ", ")+" only, and what runs outside of the sandbox reaches more: leave it out")
	}
	return lacks(Approve, field, "lets the run leave the sandbox")
}

// checkVariables refuses runs whose commands get variables of the tool host: each may be a secret of its operator.
func checkVariables(c Caller, spec *harnessv1.RunSpec) error {
	const field = "spec.config.sandbox.env"
	switch {
	case len(spec.GetConfig().GetSandbox().GetEnv()) == 0 || c.leaves():
		return nil
	case c.Roots != nil:
		return denied(field, "roots", "the token is for "+strings.Join(c.Roots, ", ")+" only, and variables of the tool host may be secrets of its operator: leave it out")
	}
	return lacks(Approve, field, "gives commands variables of the tool host, which may be secrets of its operator")
}

// lacks returns the refusal of a request for which a right is missing.
func lacks(right Right, field, what string) error {
	return denied(field, string(right), fmt.Sprintf("%s, and the token has no right %q: ask for one whose line has may=%s", what, right, right))
}

// denied returns a refusal with the field of the request and the attribute of the token.
func denied(field, attribute, message string) error {
	st, _ := fault.Status(fault.New(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, field+": "+message, "field", field, "right", attribute))
	return st.Err()
}
