package compaction

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Short names of the actions that passes take.
const (
	clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
	externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
	summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
	drop        = harnessv1.CompactionAction_COMPACTION_ACTION_DROP
	shorten     = harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN
)

// Short names of the classes.
const (
	guidance      = harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE
	ephemeral     = harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL
	replayable    = harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE
	anchoring     = harnessv1.MessageClass_MESSAGE_CLASS_ANCHORING
	nonReplayable = harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE
	anyResult     = harnessv1.MessageClass_MESSAGE_CLASS_RESULT
	assistant     = harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT
	user          = harnessv1.MessageClass_MESSAGE_CLASS_USER
	oldUser       = harnessv1.MessageClass_MESSAGE_CLASS_OLD_USER
	mediaClass    = harnessv1.MessageClass_MESSAGE_CLASS_MEDIA
	spanClass     = harnessv1.MessageClass_MESSAGE_CLASS_SPAN
)

// pass is a plan as it is being changed. Plans are values: a change makes another one.
type pass struct {
	x      *view.Index
	plan   *harnessv1.CompactionPlan
	rules  *view.Rules // of the plan
	factor float64
	used   uint64 // tokens of the next request under the plan
	recent uint64 // the first message of the recent part
	// version of the step that the pass is decided on.
	version uint64

	// unweighed is true if the pass clears images or documents that the run's model is not
	// sent, so that the estimate does not show what that frees for another model.
	unweighed bool

	changes []*harnessv1.CompactionChange
	names   []string // of the strategies that freed something, in order
}

func (d *decision) newPass() *pass {
	plan := d.s.GetCompactionPlan()
	if plan == nil {
		plan = &harnessv1.CompactionPlan{Renderer: view.Renderer}
	}
	p := &pass{
		x: d.x, plan: plan, rules: view.NewRules(plan, d.x), factor: d.factor(), used: uint64(d.b.GetUsedTokens()), version: d.in.GetVersion(),
	}
	p.recent = recentFrom(p.x, p.rules, d.cfg, d.b.GetMaxInputTokens(), p.factor)
	return p
}

// freed returns the tokens that the changes have freed, as the model counts them.
func (p *pass) freed() uint64 {
	var n uint64
	for _, c := range p.changes {
		n += uint64(c.GetFreedTokens())
	}
	return n
}

// withMark returns a plan in which a watermark has moved to that of mark, or is new. A
// watermark never moves back.
func withMark(plan *harnessv1.CompactionPlan, mark *harnessv1.Watermark) *harnessv1.CompactionPlan {
	next := proto.CloneOf(plan)
	for i, w := range next.GetWatermarks() {
		if w.GetAction() == mark.GetAction() && w.GetClass() == mark.GetClass() {
			if w.GetThroughMessage() <= mark.GetThroughMessage() {
				next.Watermarks[i] = proto.CloneOf(mark)
			}
			return next
		}
	}
	next.Watermarks = append(next.Watermarks, proto.CloneOf(mark))
	return next
}

// strategy is one step of the ladder: an action, and the classes that it is applied to by
// age, oldest message first.
type strategy struct {
	name    string
	action  harnessv1.CompactionAction
	classes []harnessv1.MessageClass
	// least is the number of tokens of messages that it is applied to.
	least uint32
}

// moved returns the plan with the watermarks of a strategy at a message.
func (p *pass) moved(st strategy, through uint64) *harnessv1.CompactionPlan {
	plan := p.plan
	for _, class := range st.classes {
		plan = withMark(plan, &harnessv1.Watermark{Action: st.action, Class: class, ThroughMessage: through, MinTokens: st.least, Version: p.version})
	}
	return plan
}

// step applies a strategy to the messages up to limit, oldest first, until the window is
// down to target tokens.
func (p *pass) step(st strategy, limit, target uint64) {
	if p.used <= target || limit == 0 {
		return
	}
	all := view.NewRules(p.moved(st, limit), p.x)
	left, reached := p.used, uint64(0)
	p.x.Between(1, limit, p.hidden(), func(e *view.Entry) bool {
		if saved := p.saved(all, e); saved > 0 {
			left -= min(left, scale(saved, p.factor))
			reached = max(reached, e.ID)
			if e.ReplacedBy <= limit {
				reached = max(reached, e.ReplacedBy) // else the message would be kept
			}
		}
		return left > target
	})
	if reached > 0 {
		p.change(st.name, st.action, st.classes[0], p.moved(st, reached))
	}
}

// change makes plan the plan of the pass, and records what that changes.
func (p *pass) change(name string, action harnessv1.CompactionAction, class harnessv1.MessageClass, plan *harnessv1.CompactionPlan) {
	rules := view.NewRules(plan, p.x)
	change := &harnessv1.CompactionChange{Action: action, Class: class}
	p.x.Between(1, uint64(len(p.x.Entries)), p.hidden(), func(e *view.Entry) bool {
		saved := p.saved(rules, e)
		if saved == 0 && rules.MediaCleared(e) == p.rules.MediaCleared(e) {
			return true
		}
		tokens := scale(saved, p.factor)
		p.used -= min(p.used, tokens)
		if change.FirstMessage == 0 {
			change.FirstMessage = e.ID
		}
		change.ThroughMessage = e.ID
		change.Messages++
		change.FreedTokens += clamp(tokens)
		return true
	})
	p.plan, p.rules = plan, rules
	p.add(name, change)
}

// hidden returns the last message of the span that the summary shows.
func (p *pass) hidden() uint64 { return p.plan.GetSummary().GetThroughMessage() }

// saved returns the tokens by which rules show less of a message than those of the plan,
// that of a dropped call included.
func (p *pass) saved(rules *view.Rules, e *view.Entry) uint64 {
	was, is := uint64(p.rules.Shown(e)), uint64(rules.Shown(e))
	if e.IsResult() && rules.Hides(e) && !p.rules.Hides(e) {
		was += uint64(e.CallTokens())
	}
	return was - min(was, is)
}

// add adds a change under the name of its strategy.
func (p *pass) add(name string, c *harnessv1.CompactionChange) {
	p.changes = append(p.changes, c)
	if !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}
