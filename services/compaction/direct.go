package compaction

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Numbers of direct clearing.
const (
	directTokens = 25  // of results of more than 100 characters
	directLeft   = 2   // newest messages that it leaves alone
	directShare  = 0.5 // of the estimate that it frees
	leastShown   = 64  // tokens that are shown of a shortened result at least
)

// directClear clears results, oldest first, those of the recent part included, until half of
// the estimate is freed. Those that no request has shown are left alone.
func (p *pass) directClear() {
	limit := min(uint64(len(p.x.Entries)), directLeft)
	limit = min(uint64(len(p.x.Entries))-limit, sentThrough(p.x))
	p.step(strategy{"direct_clear", clearing, []harnessv1.MessageClass{anyResult}, directTokens}, limit, uint64(float64(p.used)*directShare))
}

// shortenResults shows all results up to the largest size with which the window is down to
// target tokens, or to the least size.
func (p *pass) shortenResults(target uint64) {
	if p.used <= target {
		return
	}
	low, high := uint32(leastShown), uint32(leastShown)
	for i := range p.x.Entries {
		if e := &p.x.Entries[i]; e.IsResult() {
			high = max(high, p.rules.Shown(e))
		}
	}
	for low < high { // the largest size that fits
		middle := low + (high-low+1)/2
		if p.usedWith(p.shortened(middle)) <= target {
			low = middle
		} else {
			high = middle - 1
		}
	}
	plan, before := p.shortened(low), p.used
	if left := p.usedWith(plan); left < before {
		p.change("shorten", shorten, anyResult, plan)
		p.used, p.changes[len(p.changes)-1].FreedTokens = left, clamp(before-left)
	}
}

// shortened returns the plan in which all results are shown up to a number of tokens.
func (p *pass) shortened(tokens uint32) *harnessv1.CompactionPlan {
	return withMark(p.plan, &harnessv1.Watermark{
		Action: shorten, Class: anyResult, ThroughMessage: uint64(len(p.x.Entries)), ShownTokens: tokens, Version: p.version,
	})
}

// usedWith returns the tokens of the window under a plan. It may show more of a message
// than that of the pass.
func (p *pass) usedWith(plan *harnessv1.CompactionPlan) uint64 {
	rules, used, saved := view.NewRules(plan, p.x), p.used, uint64(0)
	for i := range p.x.Entries {
		e := &p.x.Entries[i]
		saved += scale(p.saved(rules, e), p.factor)
		if was, is := p.rules.Shown(e), rules.Shown(e); is > was {
			used += scale(uint64(is-was), p.factor)
		}
	}
	return used - min(used, saved)
}
