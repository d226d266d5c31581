package view

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Short names of the actions.
const (
	include     = harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED
	clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
	externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
	summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
	drop        = harnessv1.CompactionAction_COMPACTION_ACTION_DROP
	shorten     = harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN
)

// Short names of the classes that the rules name.
const (
	guidance     = harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE
	nonReplay    = harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE
	anyResult    = harnessv1.MessageClass_MESSAGE_CLASS_RESULT
	assistant    = harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT
	user         = harnessv1.MessageClass_MESSAGE_CLASS_USER
	oldUser      = harnessv1.MessageClass_MESSAGE_CLASS_OLD_USER
	span         = harnessv1.MessageClass_MESSAGE_CLASS_SPAN
	mediaClass   = harnessv1.MessageClass_MESSAGE_CLASS_MEDIA
	unclassified = harnessv1.MessageClass_MESSAGE_CLASS_UNSPECIFIED
)

// Rules are what a plan does to messages. Watermarks that name an unknown action or class
// do nothing.
type Rules struct {
	marks [6][12]*harnessv1.Watermark
	x     *Index
	goal  uint64
	// first is true for a plan of the first version.
	first bool
}

// NewRules returns the rules of a plan, nil or not, for the messages of an index.
func NewRules(plan *harnessv1.CompactionPlan, x *Index) *Rules {
	r := &Rules{x: x, first: plan.GetRenderer() < 2}
	for _, w := range plan.GetWatermarks() {
		if int(w.GetAction()) < len(r.marks) && int(w.GetClass()) < len(r.marks[0]) && w.GetAction() > include && w.GetClass() > unclassified {
			if plan.GetSummary() == nil && w.GetAction() == summarize {
				continue // nothing would show the span
			}
			r.marks[w.GetAction()][w.GetClass()] = w
		}
	}
	if s := plan.GetSummary(); s != nil {
		r.marks[summarize][span] = &harnessv1.Watermark{Action: summarize, Class: span, ThroughMessage: s.GetThroughMessage()}
	}
	r.goal = x.Goal()
	return r
}

// Action returns the plan's action on a message, and the watermark that requires it; nil if it does
// nothing.
func (r *Rules) Action(e *Entry) (harnessv1.CompactionAction, *harnessv1.Watermark) {
	switch {
	case e.Role == harnessv1.Role_ROLE_SYSTEM:
		return include, nil
	case e.IsUser():
		return r.ofUser(e)
	case e.IsResult():
		return r.ofResult(e)
	case e.Class == assistant:
		return r.ofAssistant(e)
	}
	if w := r.marks[summarize][span]; r.covers(w, e) {
		return summarize, w
	}
	if w := r.dropsText(e); w != nil {
		return drop, w
	}
	if w := r.marks[clearing][guidance]; r.covers(w, e) && e.ReplacedBy != 0 && e.ReplacedBy <= w.GetThroughMessage() && r.clears(e) {
		return clearing, w
	}
	return include, nil
}

// timesCleared is how many times longer than its line a message is that a line replaces. As no line has less
// than 50 bytes, it has at least 200.
const timesCleared = 4

// clears reports whether the line of a cleared message is worth that.
func (r *Rules) clears(e *Entry) bool {
	line := uint64(r.clearedTokens(e)-framing) * placeholderRatio
	return r.first || e.HasMedia() || e.Bytes >= timesCleared*line
}

// dropsText returns the watermark that leaves out a message that is neither a result nor the user's; nil if
// none does.
func (r *Rules) dropsText(e *Entry) *harnessv1.Watermark {
	for _, class := range [...]harnessv1.MessageClass{assistant, span} {
		if w := r.marks[drop][class]; r.covers(w, e) {
			return w
		}
	}
	return nil
}

// dropsResult returns the watermark that leaves out a result with its call; nil if none does. cleared reports
// that the result is cleared otherwise. With older texts go results that no line would replace.
func (r *Rules) dropsResult(e *Entry, cleared bool) *harnessv1.Watermark {
	if e.Call == 0 {
		return nil
	}
	if w := r.marks[drop][span]; r.covers(w, e) {
		return w
	}
	if w := r.marks[drop][anyResult]; cleared && r.covers(w, e) {
		return w
	}
	if w := r.marks[drop][assistant]; (cleared || e.Class != nonReplay && !r.clears(e)) && r.covers(w, e) {
		return w
	}
	return nil
}

func (r *Rules) ofUser(e *Entry) (harnessv1.CompactionAction, *harnessv1.Watermark) {
	if w := r.marks[externalize][oldUser]; r.covers(w, e) && e.ID != r.goal {
		return externalize, w
	}
	if w := r.marks[externalize][user]; r.covers(w, e) {
		return externalize, w
	}
	return include, nil
}

// ofAssistant is the rule for a message of the model. It is summarised only if all results
// of its calls are: a kept result keeps its call. So it is for one that is dropped.
func (r *Rules) ofAssistant(e *Entry) (harnessv1.CompactionAction, *harnessv1.Watermark) {
	if w := r.marks[summarize][span]; r.covers(w, e) {
		return summarize, w
	}
	if w := r.dropsText(e); w != nil {
		return drop, w
	}
	if w := r.marks[externalize][assistant]; r.covers(w, e) {
		return externalize, w
	}
	return include, nil
}

// ofResult is the rule for a result. It is summarised with its call.
func (r *Rules) ofResult(e *Entry) (harnessv1.CompactionAction, *harnessv1.Watermark) {
	if w := r.marks[summarize][span]; w != nil && !kept(e, w) {
		at := e.ID
		if call := r.x.Entry(e.Call); call != nil {
			if kept(call, w) {
				at = w.GetThroughMessage() + 1
			} else {
				at = call.ID
			}
		}
		if at <= w.GetThroughMessage() {
			return summarize, w
		}
	}
	var cleared *harnessv1.Watermark
	for _, class := range [...]harnessv1.MessageClass{anyResult, e.Class} {
		if w := r.marks[clearing][class]; r.covers(w, e) && (r.first || e.Class != nonReplay) {
			cleared = w
		}
	}
	switch w := r.dropsResult(e, cleared != nil); {
	case w != nil:
		return drop, w
	case cleared != nil && r.clears(e):
		return clearing, cleared
	}
	for _, class := range [...]harnessv1.MessageClass{e.Class, anyResult} {
		if w := r.marks[externalize][class]; r.covers(w, e) {
			return externalize, w
		}
	}
	if w := r.marks[shorten][anyResult]; w != nil && e.ID <= w.GetThroughMessage() && e.Tokens > w.GetShownTokens() {
		return shorten, w
	}
	return include, nil
}

// MediaCleared reports whether the images and documents of a message are left out.
func (r *Rules) MediaCleared(e *Entry) bool {
	w := r.marks[clearing][mediaClass]
	return e.HasMedia() && w != nil && e.ID <= w.GetThroughMessage()
}

// ShowsMedia reports whether the images and documents of a message are shown.
func (r *Rules) ShowsMedia(e *Entry) bool {
	if !e.HasMedia() || r.MediaCleared(e) {
		return false
	}
	action, _ := r.Action(e)
	return action == include || action == shorten || action == externalize && e.IsUser()
}

// SendsMedia reports whether images and documents that are shown are sent to the run's model,
// as far as the weight of the message tells: of those that it does not take it is sent lines.
func (r *Rules) SendsMedia(e *Entry) bool {
	return r.ShowsMedia(e) && (!e.Weighed || uint64(e.mediaTokens) >= lineTokens*e.Media.Items)
}

// lineTokens is more than a line needs that replaces an image or document. Almost all images
// need more.
const lineTokens = 64

// covers reports whether a watermark applies to a message of its class.
func (r *Rules) covers(w *harnessv1.Watermark, e *Entry) bool {
	if w == nil || e.ID > w.GetThroughMessage() || kept(e, w) {
		return false
	}
	least := w.GetMinTokens()
	if w.GetAction() == externalize && e.externalizeTokens > 0 && least > 0 {
		least = e.externalizeTokens
	}
	return e.Tokens >= least
}

// kept reports whether a watermark leaves a message alone. What a later message replaces
// is kept until the watermark has reached that message, so that a message that arrives
// changes nothing before it.
func kept(e *Entry, w *harnessv1.Watermark) bool {
	return e.Kept && (e.ReplacedBy == 0 || e.ReplacedBy > w.GetThroughMessage())
}

// Shown returns the tokens of a message as the plan shows it. That of a summary is not
// among them.
func (r *Rules) Shown(e *Entry) uint32 {
	action, w := r.Action(e)
	tokens := e.Tokens
	if r.MediaCleared(e) {
		tokens -= min(tokens, e.mediaTokens)
		tokens += noteTokens
	}
	switch action {
	case clearing:
		tokens = min(tokens, r.clearedTokens(e))
	case externalize:
		brief := e.brief
		if r.ShowsMedia(e) {
			brief += e.mediaTokens
		}
		tokens = min(tokens, brief)
	case shorten:
		tokens = min(tokens, w.GetShownTokens()+noteTokens)
	case drop, summarize:
		return r.summarizedTokens(e)
	default:
	}
	return r.withoutCalls(e, tokens)
}

// noteTokens is about the size of the line that names what is left out.
const noteTokens = 40

// clearedTokens returns the tokens of a cleared message.
func (r *Rules) clearedTokens(e *Entry) uint32 {
	if e.IsResult() {
		return max(e.stub, framing+1)
	}
	return framing + noteTokens/2
}

// summarizedTokens returns the tokens that are left of a summarised or dropped message: those of the
// calls whose results are kept.
func (r *Rules) summarizedTokens(e *Entry) uint32 {
	var left uint32
	for _, id := range e.Results {
		if result := r.x.Entry(id); result != nil && !r.Hides(result) {
			left += result.callTokens + framing
		}
	}
	return left
}

// withoutCalls returns the tokens of a message less those of its dropped calls.
func (r *Rules) withoutCalls(e *Entry, tokens uint32) uint32 {
	for _, id := range e.Results {
		if result := r.x.Entry(id); result != nil && r.Hides(result) {
			tokens -= min(tokens, result.callTokens)
		}
	}
	return tokens
}

// Hides reports whether nothing of a result is shown, its call included.
func (r *Rules) Hides(e *Entry) bool {
	action, _ := r.Action(e)
	return action == drop || action == summarize
}
