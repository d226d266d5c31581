package judge

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// Tools of the tool host whose policy covers what a wait does.
const (
	runCommand = "run_command"
	readFile   = "read_file"
)

// prepareWait decides what becomes of a call of the tool wait. A command that it runs is
// allowed, asked about and confined as a call of run_command; a file that it looks at is denied
// where reading it is, and an address is as a call that reads it.
func (j *Calls) prepareWait(prepared *harnessv1.PreparedCall, t *harnesstool.Tool, spec *harnessv1.ToolSpec, arguments string) {
	refuse := func(as harnessv1.CallDisposition, message string) {
		prepared.Disposition, prepared.Message = as, message
	}
	target, err := t.Wait(arguments)
	if err != nil {
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, err.Error())
		return
	}
	prepared.Wait = target
	prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_WAIT, runstate.WaitText(target)
	if !j.allowed(prepared, spec, arguments, policy.Exemptions{}) {
		return
	}
	switch {
	case target.GetPath() != "":
		j.allowed(prepared, j.toolOrName(readFile), encoded("path", target.GetPath()), policy.Exemptions{})
	case target.GetUrl() != "":
		j.prepareWaitURL(prepared, target.GetUrl())
	case target.GetCommand() != "":
		command := j.t.Offer.Lookup(runCommand)
		if command == nil {
			refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: the run cannot run commands.")
			if j.t.Offer.Blocked[runCommand] {
				prepared.Message = mode.BlockedText(runstate.Mode(j.t.Snapshot), runCommand)
			}
			return
		}
		arguments := encoded("command", target.GetCommand())
		confined, err := j.command(command, arguments)
		if err != nil {
			refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+err.Error())
			return
		}
		prepared.SandboxLevel = confined.level
		j.allowed(prepared, command, arguments, policy.Exemptions{
			Granted: j.t.Snapshot.GetGrantedTools(), Rules: j.t.Snapshot.GetGrants(), Workspace: j.t.Snapshot.GetWorkspace(),
			Yolo: j.t.Snapshot.GetConfig().GetTools().GetYolo(), Confined: confined.confined,
		})
	}
}

// prepareWaitURL decides about a wait for an address as about a call that reads it once.
func (j *Calls) prepareWaitURL(prepared *harnessv1.PreparedCall, address string) {
	refuse := func(as harnessv1.CallDisposition, message string) {
		prepared.Disposition, prepared.Message = as, message
	}
	if _, _, err := webtool.ParseURL(address); err != nil {
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, "url: "+err.Error())
		return
	}
	for _, name := range []string{webtool.Fetch, webtool.Request} {
		reads := j.t.Offer.Lookup(name)
		if reads == nil {
			continue
		}
		arguments := encoded("url", address)
		why, each := outside(j.t.Offer.Web, reads, arguments)
		prepared.OnlyOnce = each
		j.allowed(prepared, reads, arguments, policy.Exemptions{
			Granted: j.t.Snapshot.GetGrantedTools(), Rules: j.t.Snapshot.GetGrants(), Workspace: j.t.Snapshot.GetWorkspace(),
			Yolo: j.t.Snapshot.GetConfig().GetTools().GetYolo(), Outside: why, Each: each,
		})
		return
	}
	refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: the run cannot read addresses.")
	if j.t.Offer.Blocked[webtool.Fetch] || j.t.Offer.Blocked[webtool.Request] {
		prepared.Message = mode.BlockedText(runstate.Mode(j.t.Snapshot), webtool.Fetch)
	}
}

// allowed applies the policy for a tool to a call. It reports whether the call is not denied.
func (j *Calls) allowed(prepared *harnessv1.PreparedCall, spec *harnessv1.ToolSpec, arguments string, exempt policy.Exemptions) bool {
	decision, why := j.t.Definition.Policy.Decide(spec, arguments, exempt)
	switch decision {
	case harnessv1.ToolDecision_TOOL_DECISION_DENY:
		prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+why
		return false
	case harnessv1.ToolDecision_TOOL_DECISION_ASK:
		prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, why
	default: // it may wait
	}
	return true
}

// toolOrName returns the spec of a tool, or its name alone if the run does not have it.
func (j *Calls) toolOrName(name string) *harnessv1.ToolSpec {
	if spec := j.t.Offer.Lookup(name); spec != nil {
		return spec
	}
	return &harnessv1.ToolSpec{Name: name, Annotations: &harnessv1.ToolAnnotations{Reads: true}}
}

// encoded returns arguments with one text.
func encoded(name, text string) string {
	data, _ := json.Marshal(map[string]string{name: text}) // texts always encode
	return string(data)
}
