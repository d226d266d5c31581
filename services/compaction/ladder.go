package compaction

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Numbers of the ladder.
const (
	longUserTokens = 2_001 // from which a message of the user is externalized
	userShare      = 0.20  // of the window that the user's messages may fill
	worthShare     = 0.10  // of the window that a pass at soft pressure frees at least
	shortShare     = 0.05  // of what a pass is to free that it may leave
)

// has reports whether the run uses a strategy.
func (d *decision) has(action harnessv1.CompactionAction) bool {
	return len(d.cfg.GetStrategies()) == 0 || slices.Contains(d.cfg.GetStrategies(), action)
}

// target returns the tokens down to which a pass frees.
func (d *decision) target() uint64 {
	return uint64(d.cfg.GetTarget() * float64(d.budget()))
}

// clear clears guidance that is replaced, images and documents, and results: those that may
// be forgotten first, then the others by age.
func (d *decision) clear(p *pass) {
	if !d.has(clearing) {
		return
	}
	limit, target, least := p.recent-1, d.target(), d.cfg.GetClearTokens()
	p.clearGuidance(target)
	p.step(strategy{"clear", clearing, []harnessv1.MessageClass{ephemeral}, least}, limit, target)
	p.clearMedia(limit, target, d.b.GetExceeded())
	p.step(strategy{"clear", clearing, []harnessv1.MessageClass{replayable, anchoring}, least}, limit, target)
}

// clearGuidance clears all guidance that later guidance replaces: the watermark counts the
// messages that replace it.
func (p *pass) clearGuidance(target uint64) {
	st := strategy{"clear", clearing, []harnessv1.MessageClass{guidance}, 2 * framing}
	through := uint64(len(p.x.Entries))
	plan := p.moved(st, through)
	rules := view.NewRules(plan, p.x)
	found := false
	p.x.Between(1, through, p.hidden(), func(e *view.Entry) bool {
		found = p.saved(rules, e) > 0
		return !found
	})
	if found && p.used > target {
		p.change(st.name, st.action, guidance, plan)
	}
}

// externalize shows only the beginning of long messages: results that cannot be produced
// again first, then what else is long. The user's own messages are among them.
func (d *decision) externalize(p *pass) {
	if !d.has(externalize) {
		return
	}
	limit, target, least := p.recent-1, d.target(), d.cfg.GetExternalizeTokens()
	for _, st := range []strategy{
		{"externalize", externalize, []harnessv1.MessageClass{nonReplayable}, least},
		{"externalize", externalize, []harnessv1.MessageClass{anyResult, assistant}, least},
		{"externalize", externalize, []harnessv1.MessageClass{user}, longUserTokens},
	} {
		p.step(st, limit, target)
	}
	share := uint64(userShare * float64(d.b.GetMaxInputTokens()) / p.factor)
	if shown := p.userTokens(); shown > share {
		// Down to the share, and not below it for the sake of the target.
		most := p.used - min(p.used, scale(shown-share, p.factor))
		p.step(strategy{"externalize", externalize, []harnessv1.MessageClass{oldUser}, 0}, limit, max(target, most))
	}
}

// userTokens returns the tokens of the user's own messages as they are shown.
func (p *pass) userTokens() uint64 {
	var n uint64
	for _, id := range p.x.Lasting {
		if e := p.x.Entry(id); e.IsUser() {
			n += uint64(p.rules.Shown(e))
		}
	}
	return n
}

// drop leaves out cleared results with their calls, and where no summary will be made of them the agent's
// own older texts.
func (d *decision) drop(p *pass) {
	d.dropResults(p, p.recent-1, d.target())
	if !d.retries(p) {
		d.dropTexts(p, p.recent-1, d.target())
	}
}

// dropResults leaves out cleared results with their calls.
func (d *decision) dropResults(p *pass, limit, target uint64) {
	d.dropClass(p, anyResult, limit, target)
}

// dropTexts leaves out the agent's own older texts, and the harness's messages to it.
func (d *decision) dropTexts(p *pass, limit, target uint64) { d.dropClass(p, assistant, limit, target) }

// dropClass leaves out older messages of a class. One message names all that are left out.
func (d *decision) dropClass(p *pass, class harnessv1.MessageClass, limit, target uint64) {
	if !d.has(drop) {
		return
	}
	named := slices.ContainsFunc(p.plan.GetWatermarks(), func(w *harnessv1.Watermark) bool { return w.GetAction() == drop })
	before := len(p.changes)
	p.step(strategy{"drop", drop, []harnessv1.MessageClass{class}, 0}, min(limit, sentThrough(p.x)), target)
	if len(p.changes) > before && !named {
		p.used += scale(view.DroppedTokens, p.factor)
	}
}

// worth reports whether a pass at soft pressure frees enough to break the cached prefix.
func (d *decision) worth(p *pass) bool {
	return p.used <= d.target() || float64(p.freed()) >= worthShare*float64(d.b.GetMaxInputTokens())
}

// apply shows a merged summary instead of its span, if that is shorter. It reports whether
// it is. Texts that are dropped count as shown: the summary has their content again.
func (p *pass) apply(ref *harnessv1.SummaryRef) bool {
	plan := proto.CloneOf(p.plan)
	plan.Summary = ref
	rules, whole := view.NewRules(plan, p.x), view.NewRules(withTexts(p.plan), p.x)
	saved := uint64(p.plan.GetSummary().GetTokens())
	replaced := saved
	p.x.Between(1, uint64(len(p.x.Entries)), p.hidden(), func(e *view.Entry) bool {
		saved += p.saved(rules, e)
		if is := rules.Shown(e); e.ID <= ref.GetThroughMessage() {
			replaced += uint64(whole.Shown(e) - min(whole.Shown(e), is))
		}
		return true
	})
	if max(saved, replaced) <= uint64(ref.GetTokens()) {
		return false
	}
	former := p.plan.GetSummary().GetTokens()
	p.change("summarize", summarize, spanClass, plan)
	last := p.changes[len(p.changes)-1]
	p.used += scale(uint64(ref.GetTokens()), p.factor)
	p.used -= min(p.used, scale(uint64(former), p.factor))
	last.FreedTokens = clamp(scale(saved-min(saved, uint64(ref.GetTokens())), p.factor))
	return true
}

// withTexts returns a plan that drops nothing but results.
func withTexts(plan *harnessv1.CompactionPlan) *harnessv1.CompactionPlan {
	next := proto.CloneOf(plan)
	next.Watermarks = slices.DeleteFunc(next.Watermarks, func(w *harnessv1.Watermark) bool {
		return w.GetAction() == drop && w.GetClass() != anyResult
	})
	return next
}
