package repair

import (
	"maps"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

func (d *decision) run() runlog.Run {
	return runlog.Run{Namespace: d.in.GetNamespace(), ID: d.in.GetRunId()}
}

// seeParent takes in what a child that starts has seen of its parent, which may want
// something else by now, or may be gone. state is nil for a root.
func (d *decision) seeParent(state *harnessv1.ParentState) {
	p := d.s.GetParent()
	if p != nil && state.GetWaits() {
		d.inheritMode(state.GetPlans())
	}
	switch {
	case p == nil:
	case !state.GetWaits():
		d.cancel = &harnessv1.Cancel{Reason: "parent_gone: the run that started it no longer waits for it"}
	case state.GetWant() == harnessv1.ChildWant_CHILD_WANT_END:
		p.Order = max(p.GetOrder(), state.GetOrder())
		d.cancel = &harnessv1.Cancel{Reason: "The run that started it wants it no more."}
	case state.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT:
		p.Order, p.Halted = max(p.GetOrder(), state.GetOrder()), true
		d.halted = true
	default:
		p.Order = max(p.GetOrder(), state.GetOrder())
	}
}

// applyOrder takes an order of the parent, unless a newer one was taken.
func (d *decision) applyOrder(item *harnessv1.InboxItem) (kind, refusal string, err error) {
	kind = "order"
	p := d.s.GetParent()
	switch {
	case p == nil:
		return kind, "the run has no parent", nil
	case item.GetOrder() <= p.GetOrder():
		return kind, "a newer order was taken before", nil
	}
	p.Order = item.GetOrder()
	d.inheritMode(item.GetPlans())
	if item.GetModeChange() != nil {
		return kind, "", nil
	}
	p.Halted, d.halted, d.ordered = false, false, true
	if message, ok := item.GetInput().(*harnessv1.InboxItem_UserMessage); ok {
		d.ordered = false
		if err := d.applyMessage(message.UserMessage); err != nil {
			return kind, "", err
		}
		runstate.ExtendBudgets(d.s, item.GetLease())
		return kind, "", nil
	}
	if runstate.Ended(d.s) {
		return kind, "", nil
	}
	switch input := item.GetInput().(type) {
	case *harnessv1.InboxItem_Interrupt:
		p.Halted, d.halted = true, true
	case *harnessv1.InboxItem_Cancel:
		d.cancel, d.canceller = input.Cancel, d.caller
	case *harnessv1.InboxItem_Resume:
		runstate.ExtendBudgets(d.s, input.Resume.GetBudgets())
		d.interrupt, d.resumed, d.refused = nil, "resume", item.GetRefused()
	default:
		return kind, "this program does not know such an order", nil
	}
	return kind, "", nil
}

// inheritMode has the run be in plan mode while its parent is, and in its own mode otherwise.
func (d *decision) inheritMode(plans bool) {
	from := runstate.Mode(d.s)
	d.s.Parent.Plans = plans
	if to := runstate.Mode(d.s); from != to && !runstate.Ended(d.s) {
		d.changeMode(from, to)
	}
}

// applyReport takes in what a child reports. One that has ended answers its call.
func (d *decision) applyReport(r *harnessv1.ChildReport) (refusal string, err error) {
	known := tree.FindRun(d.s, r.GetRunId())
	before, last := tree.Ended(known), known.GetReport()
	c := tree.Take(d.s, r)
	switch {
	case c == nil:
		return "it is not a newer report of a child of this run", nil
	case before: // a client had it work again
	case tree.Ended(c):
		d.Emit(event.AgentEnded(c))
		if runstate.Ended(d.s) {
			return "", nil
		}
		return "", d.endAgent(c, r.GetAnswer())
	case runstate.Ended(d.s):
	case d.extend(c):
	case d.s.GetStopping() == nil && tree.StartsWaiting(c, last):
		d.Emit(event.AgentWaiting(c))
	}
	return "", nil
}

// endAgent gives what waits for a child that has ended its result: its call, or its graph. The
// end of one in the background waits for the next turn, or for a call of agent_wait.
func (d *decision) endAgent(c *harnessv1.Child, answer *harnessv1.Content) error {
	if g, _ := tree.TaskOf(d.s, c); g != nil {
		tree.EndTask(d.s, c, answer)
		return nil
	}
	call := find(runstate.AwaitedCalls(d.s), tree.CallOf(c))
	if call == nil {
		return nil // it has its result
	}
	said, err := d.text(answer)
	if err != nil {
		return err
	}
	text, failed := tree.ResultText(c, said)
	return d.answerAgent(call, text, said, failed)
}

// answerAgent answers a call that waits for sub-agents. said is what they said, without what
// differs between equal answers.
func (d *decision) answerAgent(call *harnessv1.PendingCall, text, said string, failed bool) error {
	runstate.RecordAnswer(d.s, call.GetCallId(), d.item)
	if err := d.answerFromOutside(call, content.Inline(text), &harnessv1.ToolAnswer{
		CallId: call.GetCallId(), Result: content.Inline(said), IsError: failed,
	}); err != nil {
		return err
	}
	d.resumeIfAnswered("agent")
	return nil
}

// answerWaits answers the calls of agent_wait for which a child has ended.
func (d *decision) answerWaits() error {
	for _, call := range tree.Waited(d.s) {
		var texts []string
		for _, id := range call.GetDelegation().GetRuns() {
			c := tree.FindRun(d.s, id)
			switch {
			case !tree.Ended(c):
			case c.GetTold() || !c.GetBackground():
				texts = append(texts, "Run "+id+" has ended, and you have its result.")
			default:
				text, err := d.childResult(c)
				if err != nil {
					return err
				}
				texts = append(texts, text)
			}
		}
		text := strings.Join(texts, "\n\n")
		if err := d.answerAgent(call, text, text, false); err != nil {
			return err
		}
	}
	return nil
}

// childResult returns the result of a child in the background that has ended, and records that the
// model knows it.
func (d *decision) childResult(c *harnessv1.Child) (string, error) {
	said, err := d.text(c.GetReport().GetAnswer())
	if err != nil {
		return "", err
	}
	text, failed := tree.ResultText(c, said)
	if text, err = d.hookResult(c, text, failed); err != nil {
		return "", err
	}
	tree.RecordTold(c)
	return text, nil
}

// hookResult calls on_error and after_tool_call for a call in the background whose run has ended, and returns the
// result with what they replaced. Its arguments are not known any more.
func (d *decision) hookResult(c *harnessv1.Child, text string, failed bool) (string, error) {
	id := tree.StartedBy(c)
	payload := agent.CallPayload(id, c.GetAgent(), "{}", text, failed)
	var effects hook.Effects
	if failed {
		p := maps.Clone(payload)
		p["error"] = text
		var err error
		if effects, err = d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, id, c.GetAgent(), p); err != nil {
			return "", err
		}
	}
	after, err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, id, c.GetAgent(), payload)
	if err != nil {
		return "", err
	}
	if replaced, ok := after.Text("result"); ok {
		text = replaced
	}
	if after.Abort != "" {
		d.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, after.Abort)
	}
	effects.Merge(after)
	d.record(effects)
	return text, nil
}

// addEnded adds a message with the results of the children in the background that have ended
// since the last turn.
func (d *decision) addEnded() error {
	var texts []string
	for _, c := range tree.Untold(d.s) {
		text, err := d.childResult(c)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		d.addResults("A sub-agent that worked in the background has ended.\n\n" + strings.Join(texts, "\n\n"))
	}
	return nil
}

// addResults adds a message with results of sub-agents.
func (d *decision) addResults(text string) {
	m := runstate.GuidanceMessage(text)
	m.Kept = d.Marks()
	d.Append(m)
}

// extend gives a child more that has used up its lease, or needs more for a call. If its definition allows no more, the child gets the
// order to end. It reports whether the child has an order.
func (d *decision) extend(c *harnessv1.Child) bool {
	if d.s.GetStopping() != nil || c.GetWant() != harnessv1.ChildWant_CHILD_WANT_WORK || tree.Lacks(c) == "" || c.GetReport().GetOrder() != c.GetOrder() {
		return false
	}
	def := tree.Lookup(d.made.Agents, c.GetAgent())
	lease, ok := tree.More(d.s, def, c)
	if ok {
		tree.Extend(c, lease)
	}
	return ok || tree.EndExhausted(c, def)
}

// extendAll gives all children more that lack something, as far as the run has it by now: others may have ended, or its parent has given
// it more. Those for which there never is any continue without.
func (d *decision) extendAll() {
	for _, c := range tree.Wanted(d.s) {
		lacks := !tree.Ended(c) && tree.Lacks(c) != "" && c.GetWant() == harnessv1.ChildWant_CHILD_WANT_WORK && c.GetReport().GetOrder() == c.GetOrder()
		if lacks && !d.extend(c) && tree.Refuses(d.s, c, d.s.GetParent() == nil || d.refused) {
			tree.Refuse(c)
		}
	}
}

// overdue has the child of a call end whose deadline has passed. It reports whether the
// call waits for that; false: the child was never started.
func (d *decision) overdue(call *harnessv1.PendingCall) bool {
	c := tree.ChildOf(d.s, call.GetCallId())
	if !tree.End(c) {
		return false
	}
	call.Deadline, c.Overdue = nil, true
	return true
}
