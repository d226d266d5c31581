package compaction

import (
	"math"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// framing is the number of tokens that frame a message.
const framing = 4

// bytesPerToken is the usual ratio, for the estimate far below the thresholds.
const bytesPerToken = 4

// estimate sets how full the window is. It needs the index and the weights of all messages
// if the window may be as full as the soft threshold.
func (d *decision) estimate() error {
	known := d.known()
	framed := framing * (d.s.GetMessageCount() - min(d.b.GetReportedMessages(), d.s.GetMessageCount()))
	bytes := d.b.GetUnreportedBytes()
	if d.x == nil {
		atMost := known + scale(framed+bytes, d.factor())
		if atMost < uint64(d.b.GetSoftTokens()) && !d.b.GetExceeded() && d.b.GetMediaBytes() <= media.MaxRequest {
			d.b.UsedTokens = clamp(known + scale(framed+bytes/bytesPerToken, d.factor()))
			return nil
		}
	}
	if err := d.needIndex(); err != nil {
		return err
	}
	rules := view.NewRules(d.s.GetCompactionPlan(), d.x)
	var since uint64
	for i := d.b.GetReportedMessages(); i < uint64(len(d.x.Entries)); i++ {
		since += uint64(rules.Shown(&d.x.Entries[i]))
	}
	if d.b.GetReportedTokens() == 0 {
		since += uint64(d.s.GetCompactionPlan().GetSummary().GetTokens())
	}
	d.b.UsedTokens = clamp(d.known() + scale(since, d.factor()))
	d.b.MediaBytes = shownMedia(d.x, rules).InBytes()
	return nil
}

// known returns the tokens that need no counting: those of the last report less those that
// were freed since; before the first report those of the tools and the safety buffer.
func (d *decision) known() uint64 {
	if reported := uint64(d.b.GetReportedTokens()); reported > 0 {
		return reported - min(reported, uint64(d.b.GetFreedTokens()))
	}
	return uint64(d.cfg.GetSafetyBuffer()) + scale(uint64(d.b.GetToolTokens()), d.factor())
}

// needIndex needs the index of the conversation, and the weight of each message.
func (d *decision) needIndex() error {
	if d.x == nil && d.s.GetMessageCount() == 0 {
		d.x = &view.Index{}
	}
	if d.x == nil || uint64(len(d.x.Entries)) != d.s.GetMessageCount() {
		return needs(KeyConversation)
	}
	if o := d.observed(KeyWeights); o != nil {
		d.x.Weigh(o.GetWeights())
		return nil
	}
	for i := range d.x.Entries {
		if !d.x.Entries[i].Weighed {
			return needs(KeyWeights)
		}
	}
	return nil
}

// factor returns the tokens that the model needs for one that was counted: as its reports
// show it, before the first one as the run started with it.
func (d *decision) factor() float64 {
	if f := d.b.GetFactor(); f >= 1 && d.b.GetFactorModel() == d.s.GetModel() {
		return f
	}
	return 1
}

// scale returns counted tokens as the model counts them.
func scale(tokens uint64, factor float64) uint64 { return uint64(math.Ceil(float64(tokens) * factor)) }

// roughEstimate returns the tokens in the window of s. counted is the exact number of those
// that the provider has not reported, nil if they were not counted. ok is false if it is
// nil and the window may be fuller than the soft threshold.
func roughEstimate(s *harnessv1.Snapshot, counted *uint32) (used uint32, ok bool) {
	b := s.GetTokenBudget()
	known := uint64(b.GetReportedTokens())
	if known == 0 { // before the first report
		known = uint64(s.GetConfig().GetContext().GetSafetyBuffer()) + uint64(b.GetToolTokens())
	}
	if counted != nil {
		return clamp(known + uint64(*counted)), true
	}
	framed := framing * (s.GetMessageCount() - min(b.GetReportedMessages(), s.GetMessageCount()))
	bytes := b.GetUnreportedBytes()
	if known+framed+bytes >= uint64(b.GetSoftTokens()) {
		return 0, false
	}
	return clamp(known + framed + bytes/bytesPerToken), true
}

func observedTokens(all []*harnessv1.Observation) *uint32 {
	for _, o := range all {
		if t, ok := o.GetValue().(*harnessv1.Observation_Tokens); ok && o.GetKey() == KeyTokens {
			return &t.Tokens
		}
	}
	return nil
}

func clamp(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
