package gateway

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Context is what a model was sent at a version of a run, or would be sent.
//
// A version with the response of a turn, and the versions after it up to the end of the
// turn's step, are of the request that it answers: the conversation before the response,
// under the plan of the step that the turn was made of. Every other version is of the
// request that the next turn would send if nothing was added: the conversation up to the
// version, under the plan of the newest step.
type Context struct {
	// Step is the newest one at the version.
	Step *harnessv1.Step
	// Response is that of the turn at the version; nil if there is none yet.
	Response *harnessv1.ModelResponded
	// Conversation that the request is made of.
	Conversation *conversation.Conversation
	// Weights that the response states, in addition to those of the conversation.
	Weights *harnessv1.Weights
	// Index of the conversation, and the Items of its view.
	Index *view.Index
	Items []view.Item
}

// Config returns the settings of the run, complete.
func (c *Context) Config() *harnessv1.LoopConfig {
	return runstate.Resolve(c.Step.GetSnapshot().GetConfig(), 0)
}

// Model returns the model that responded, or that the next turn calls, as PROVIDER:NAME.
func (c *Context) Model() string {
	return cmp.Or(c.Response.GetModel(), c.Step.GetSnapshot().GetModel())
}

// Window returns the tokens that a request may hold.
func (c *Context) Window() uint32 {
	return cmp.Or(c.Step.GetSnapshot().GetTokenBudget().GetMaxInputTokens(), c.Config().GetContext().GetMaxInputTokens())
}

// Used returns the tokens that the request is estimated to hold: as compaction estimated
// them for it, else the newest report of the provider and the items appended since, else
// all items with the tools and the safety buffer.
func (c *Context) Used() uint32 {
	b := c.Step.GetSnapshot().GetTokenBudget()
	if c.Step.GetCompactionComplete() != nil && b.GetUsedTokens() > 0 {
		return b.GetUsedTokens()
	}
	factor := 1.0
	if b.GetFactorModel() == c.Step.GetSnapshot().GetModel() {
		factor = max(b.GetFactor(), 1)
	}
	known := float64(b.GetReportedTokens()) - float64(b.GetFreedTokens())
	if b.GetReportedTokens() == 0 {
		known = factor*float64(b.GetToolTokens()) + float64(c.Config().GetContext().GetSafetyBuffer())
	}
	for i := range c.Items {
		if it := &c.Items[i]; b.GetReportedTokens() == 0 || it.First > b.GetReportedMessages() {
			known += factor * float64(c.tokens(it))
		}
	}
	return uint32(min(max(known, 0), math.MaxUint32))
}

// cutNote is about the tokens that frame a message and name what is left out of it.
const cutNote = 44

// tokens returns the tokens of an item, estimated if it has no weight: a result counts at
// most the tokens that a request shows of it.
func (c *Context) tokens(it *view.Item) uint32 {
	e := c.Index.Entry(it.First)
	if e == nil || e.Weighed || !e.IsResult() {
		return it.Tokens
	}
	return min(it.Tokens, runstate.ShownTokens(c.Config())+cutNote)
}

// weight returns the recorded tokens of a message; 0: none are.
func (c *Context) weight(id uint64) uint32 {
	if n := c.Conversation.Weight(id); n > 0 {
		return n
	}
	if first, w := c.Weights.GetFirstMessage(), c.Weights.GetTokens(); id >= first && id-first < uint64(len(w)) {
		return w[id-first]
	}
	return 0
}

// shownText bounds the text of an item, in bytes.
const shownText = 2000

// Describe returns an item as clients see it. sent is its message as it is sent; weigh
// counts the tokens of such a message. hidden is why the request leaves out images or documents
// that the view shows; empty if it leaves out none.
func (c *Context) Describe(it *view.Item, sent *harnessv1.Message, weigh func(*harnessv1.Message) uint32, hidden string) *harnessv1.ContextItem {
	d := &harnessv1.ContextItem{
		FirstMessage: it.First, LastMessage: it.Last, Role: sent.GetRole(), Kind: sent.GetKind(), TurnNumber: sent.GetTurnNumber(), Action: it.Action,
		Text: content.Cut(content.Text(sent.GetContent()), shownText), ToolName: sent.GetToolName(),
	}
	for _, call := range sent.GetToolCalls() {
		d.Calls = append(d.Calls, call.GetName())
	}
	stored := c.stored(it)
	if e := c.Index.Entry(it.Last); e != nil && d.TurnNumber == 0 {
		d.TurnNumber = e.Turn
	}
	recorded := uint32(0)
	if stored != nil {
		recorded = c.weight(it.First)
	}
	if d.Reason = c.reason(it, stored, sent); d.Reason == "" {
		d.Tokens = cmp.Or(recorded, weigh(sent))
		d.OriginalTokens, d.Reason = d.Tokens, hidden
		if hidden != "" {
			d.Ref = c.ref(it, stored)
		}
		return d
	}
	if d.Action == include && c.mediaMark(it) != nil {
		d.Action = clearing
	}
	d.Tokens, d.Ref = weigh(sent), c.ref(it, stored)
	if d.OriginalTokens = cmp.Or(recorded, it.Original); d.Action == include { // cut as any result
		d.Tokens = cmp.Or(recorded, d.Tokens)
		d.OriginalTokens = d.Tokens
	}
	return d
}

// stored returns the message that an item shows; nil for a summary, and for the result of a
// call without one.
func (c *Context) stored(it *view.Item) *harnessv1.Message {
	if it.First == 0 || it.First != it.Message.GetId() {
		return nil
	}
	return c.Conversation.Messages[it.First-1]
}

// ref returns the reference with which the model reads what an item leaves out.
func (c *Context) ref(it *view.Item, stored *harnessv1.Message) string {
	switch {
	case stored != nil:
		return view.OriginalRef(stored)
	case it.First > 0:
		return view.SpanRef(it.First, it.Last)
	}
	return ""
}

// Short names of the actions.
const (
	include     = harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED
	clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
	externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
	summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
	drop        = harnessv1.CompactionAction_COMPACTION_ACTION_DROP
	shorten     = harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN
)

// reason returns on one line why an item is not shown in full; empty if it is.
func (c *Context) reason(it *view.Item, stored, sent *harnessv1.Message) string {
	w := it.Mark
	switch it.Action {
	case clearing:
		if w.GetClass() == harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE {
			return fmt.Sprintf("cleared: %s replaces this guidance", view.Ref(c.Index.Entry(it.First).ReplacedBy)) + c.pass(w)
		}
		return "cleared: " + c.covered(w)
	case externalize:
		return "externalised: " + c.covered(w)
	case summarize:
		if stored == nil {
			return fmt.Sprintf("summary of %s", view.SpanRef(it.First, it.Last)) + c.pass(w)
		}
		return fmt.Sprintf("summarised up to %s, but for calls whose results are shown", view.Ref(w.GetThroughMessage())) + c.pass(w)
	case drop:
		if stored == nil {
			return "calls and results that are not shown" + c.pass(w)
		}
		return "without calls whose results are not shown" + c.pass(w)
	case shorten:
		return fmt.Sprintf("shortened to %d tokens: %s", w.GetShownTokens(), c.covered(w))
	default: // shown, with or without its media
	}
	if w := c.mediaMark(it); w != nil {
		return "cleared: " + c.covered(w)
	}
	if stored != nil && isCut(stored, sent) {
		return fmt.Sprintf("shown with at most %d tokens, as every result and argument", runstate.ShownTokens(c.Config()))
	}
	return ""
}

// isCut reports whether a message is sent with less than is stored.
func isCut(stored, sent *harnessv1.Message) bool {
	shorter := func(stored, sent *harnessv1.Content) bool {
		size := uint64(len(stored.GetInline()))
		if b := stored.GetBlob(); b != nil {
			size = b.GetSize()
		}
		return sent.GetBlob() == nil && uint64(len(sent.GetInline())) < size
	}
	for i, call := range stored.GetToolCalls() {
		if i < len(sent.GetToolCalls()) && shorter(call.GetArguments(), sent.GetToolCalls()[i].GetArguments()) {
			return true
		}
	}
	return shorter(stored.GetContent(), sent.GetContent())
}

// mediaMark returns the watermark that leaves out the images and documents of an item; nil
// if none does.
func (c *Context) mediaMark(it *view.Item) *harnessv1.Watermark {
	e := c.Index.Entry(it.First)
	w := c.mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_MEDIA)
	if w == nil || e == nil || !e.HasMedia() || it.Last > w.GetThroughMessage() {
		return nil
	}
	return w
}

// mark returns the watermark of an action and a class; nil if there is none.
func (c *Context) mark(action harnessv1.CompactionAction, class harnessv1.MessageClass) *harnessv1.Watermark {
	all := c.Step.GetSnapshot().GetCompactionPlan().GetWatermarks()
	if i := slices.IndexFunc(all, func(w *harnessv1.Watermark) bool { return w.GetAction() == action && w.GetClass() == class }); i >= 0 {
		return all[i]
	}
	return nil
}

// covered returns what a watermark covers, and its pass.
func (c *Context) covered(w *harnessv1.Watermark) string {
	text := classNames[w.GetClass()]
	if n := w.GetMinTokens(); n > 0 {
		text += fmt.Sprintf(" of %d tokens or more", n)
	}
	return text + " up to " + view.Ref(w.GetThroughMessage()) + c.pass(w)
}

// pass names the pass that set a watermark. That of a summary is not in its span's.
func (c *Context) pass(w *harnessv1.Watermark) string {
	version := w.GetVersion()
	if version == 0 {
		version = c.mark(w.GetAction(), w.GetClass()).GetVersion()
	}
	if version == 0 {
		return ""
	}
	return fmt.Sprintf("; pass at version %d", version)
}

// classNames are the classes of messages in reasons.
var classNames = map[harnessv1.MessageClass]string{
	harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE: "replaced guidance",
	harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL:         "ephemeral results",
	harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE:        "replayable results",
	harnessv1.MessageClass_MESSAGE_CLASS_ANCHORING:         "anchoring results",
	harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE:    "results that cannot be produced again",
	harnessv1.MessageClass_MESSAGE_CLASS_RESULT:            "all results",
	harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT:         "messages of the model",
	harnessv1.MessageClass_MESSAGE_CLASS_USER:              "messages of the user",
	harnessv1.MessageClass_MESSAGE_CLASS_OLD_USER:          "older messages of the user, to their first line,",
	harnessv1.MessageClass_MESSAGE_CLASS_SPAN:              "messages",
	harnessv1.MessageClass_MESSAGE_CLASS_MEDIA:             "images and documents",
}

// Plan returns the plan as ranges of messages, by their first message: for each watermark
// that applies to any message, from the first to the last of these.
func (c *Context) Plan() []*harnessv1.PlanRange {
	plan := c.Step.GetSnapshot().GetCompactionPlan()
	rules := view.NewRules(plan, c.Index)
	type key struct {
		action harnessv1.CompactionAction
		class  harnessv1.MessageClass
	}
	ranges := map[key]*harnessv1.PlanRange{}
	add := func(id uint64, action harnessv1.CompactionAction, class harnessv1.MessageClass) {
		r := ranges[key{action, class}]
		if r == nil {
			r = &harnessv1.PlanRange{FirstMessage: id, Action: action, Class: class, Version: c.mark(action, class).GetVersion()}
			ranges[key{action, class}] = r
		}
		r.LastMessage = id
		r.Messages++
	}
	for i := range c.Index.Entries {
		e := &c.Index.Entries[i]
		if action, w := rules.Action(e); w != nil {
			add(e.ID, action, w.GetClass())
		}
		if rules.MediaCleared(e) {
			add(e.ID, clearing, harnessv1.MessageClass_MESSAGE_CLASS_MEDIA)
		}
	}
	list := make([]*harnessv1.PlanRange, 0, len(ranges))
	for _, r := range ranges {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *harnessv1.PlanRange) int {
		return cmp.Or(cmp.Compare(a.GetFirstMessage(), b.GetFirstMessage()), cmp.Compare(a.GetAction(), b.GetAction()), cmp.Compare(a.GetClass(), b.GetClass()))
	})
	return list
}
