package judge

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// askAfterLoss is why the first call asks that writes or runs a command after calls were lost.
const askAfterLoss = "the newest records of this run were lost with calls that it had made; check that this one is still right"

// Prepare decides what becomes of a call before its subscribers are called.
func (j *Calls) Prepare(call *harnessv1.ToolCall) *harnessv1.PreparedCall {
	tools := j.t.present()
	name := harnesstool.CanonicalName(call.GetName())
	prepared := &harnessv1.PreparedCall{CallId: call.GetId(), Tool: call.GetName()}
	refuse := func(as harnessv1.CallDisposition, message string) *harnessv1.PreparedCall {
		prepared.Disposition, prepared.Message = as, message
		return prepared
	}
	set, spec := tools.Reach(name, call.GetByCallTool())
	if spec == nil {
		if tools.Blocked[name] {
			return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, mode.BlockedText(j.t.mode(), name))
		}
		message := fmt.Sprintf("There is no tool %q.", content.Cut(name, 64))
		if near := tools.Near(name); len(near) > 0 {
			message += " Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			message += " Use one of the tools that you are offered."
		}
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, message)
	}
	prepared.Offered = true
	if err := set.Validate(name, call.GetArguments().GetInline()); err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, err.Error())
	}
	a := spec.GetAnnotations()
	prepared.Origin = spec.GetOrigin()
	prepared.Reads, prepared.Writes, prepared.Explores = a.GetReads(), a.GetWrites(), a.GetExplores()
	switch t := harnesstool.Of(spec); {
	case t == nil:
	case t.Question != nil:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION
		prepared.Message = t.Question(call.GetArguments().GetInline())
		return prepared
	case t.Wait != nil:
		j.prepareWait(prepared, t, spec, call.GetArguments().GetInline())
		return prepared
	case t.Unrestricted:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
		return prepared
	}
	prepared.ParallelSafe, prepared.Idempotent = a.GetParallelSafe(), a.GetIdempotent()
	allowed := harnessv1.CallDisposition_CALL_DISPOSITION_RUN
	switch spec.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT
	case harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT:
		if refusal := j.prepareDelegation(prepared, name, call.GetArguments().GetInline()); refusal != "" {
			return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, refusal)
		}
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_AGENT
	case harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
	default: // a tool host runs it
	}
	command, err := j.command(spec, call.GetArguments().GetInline())
	if err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+err.Error())
	}
	prepared.SandboxLevel, prepared.SandboxHosts = command.level, command.hosts
	guarded := guardedPlace(spec, call.GetArguments().GetInline())
	prepared.Guarded = guarded != ""
	outsideWhy, each := outside(j.t.Offer.Web, spec, call.GetArguments().GetInline())
	decision, why := j.t.Definition.Policy.Decide(spec, call.GetArguments().GetInline(), policy.Exemptions{
		Granted: j.t.Snapshot.GetGrantedTools(), Rules: j.t.Snapshot.GetGrants(), Workspace: j.t.Snapshot.GetWorkspace(),
		Yolo: j.t.Snapshot.GetConfig().GetTools().GetYolo(), Confined: command.confined, Guarded: guarded, Outside: outsideWhy, Each: each,
	})
	switch changed := tools.Servers.Lookup(name).GetChange(); {
	case decision == harnessv1.ToolDecision_TOOL_DECISION_DENY:
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+why)
	case changed != nil && j.t.Snapshot.GetAutonomous():
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: the server has changed the definition of this tool, and no person is there to approve it. Do without it.")
	case changed != nil: // neither a rule nor a grant was made for this definition
		prepared.Disposition, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, true
		prepared.Message = "the server has changed the definition of this tool since it was approved:\n" + changed.GetDifference()
	case guarded != "" && j.restores(): // neither a rule nor a grant nor yolo changes places that are put back
		prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, guarded
	case command.ask != "":
		prepared.Disposition, prepared.Message, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, command.ask, true
	case decision == harnessv1.ToolDecision_TOOL_DECISION_ASK && allowed != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		prepared.Disposition, prepared.Message, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, why, each
	case j.t.Snapshot.GetLedgers().GetAsks() && prepared.GetWrites() &&
		(allowed == harnessv1.CallDisposition_CALL_DISPOSITION_RUN || allowed == harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT):
		prepared.Disposition, prepared.Message, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, askAfterLoss, true
	default:
		prepared.Disposition = allowed
	}
	return prepared
}

// prepareDelegation reads what a call wants of sub-agents. refusal is why it gets nothing; empty if
// it does.
func (j *Calls) prepareDelegation(prepared *harnessv1.PreparedCall, name, arguments string) (refusal string) {
	d, err := tree.Request(j.t.Snapshot, j.t.Definition.Agents, name, arguments)
	if err != nil {
		return err.Error()
	}
	more := tree.Needs(name, d)
	if left := tree.Room(j.t.Snapshot) - j.delegated; more > left {
		return fmt.Sprintf("The call needs %d sub-agents, and until the next message of the user this run may start %d more. "+
			"Do the rest yourself, or continue one that has ended.", more, max(0, left))
	}
	j.delegated += more
	prepared.Delegation = d
	return ""
}
