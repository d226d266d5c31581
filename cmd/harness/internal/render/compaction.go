package render

import (
	"fmt"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// compactionLine returns the line for an event about compaction, empty for those that are
// not printed.
func (t *Text) compactionLine(e *harnessv1.Event) string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_CompactionStarted:
		switch c := v.CompactionStarted; {
		case awaitsSummary(c):
			return t.style.warn("the context is full: the run waits for a summary of older messages")
		case c.GetBackground():
			return t.style.dim("a summary of older messages was requested; the agent continues")
		}
	case *harnessv1.Event_CompactionCompleted:
		return t.style.compacted(v.CompactionCompleted)
	}
	return "" // a pass without a summary: its end follows
}

// awaitsSummary reports whether the run waits for the summary that a pass has requested.
func awaitsSummary(c *harnessv1.CompactionStarted) bool {
	return !c.GetBackground() && c.GetJob() != ""
}

// compacted returns the result of a pass of compaction.
func (s Style) compacted(c *harnessv1.CompactionCompleted) string {
	why := ""
	if c.GetError() != "" {
		why = "; the summary could not be used: " + shorten(c.GetError(), 200)
	}
	if len(c.GetStrategies()) == 0 && c.GetFreedTokens() == 0 {
		return s.warn("compaction freed nothing of " + count(uint64(c.GetTokensBefore())) + " tokens" + why)
	}
	line := fmt.Sprintf("compacted %s %s %s tokens", count(uint64(c.GetTokensBefore())), s.arrow(), count(uint64(c.GetTokensAfter())))
	if did := changesText(c.GetChanges()); did != "" {
		line += ": " + did
	}
	if c.GetDuration().AsDuration() >= time.Millisecond {
		line += " (" + span(c.GetDuration().AsDuration()) + ")"
	}
	if why != "" {
		return s.dim(line) + s.warn(why)
	}
	return s.dim(line)
}

// changeKind is an action on one sort of messages.
type changeKind struct{ verb, noun string }

// changesText returns the changes of a pass, such as "cleared 34 results, externalised 2
// messages".
func changesText(changes []*harnessv1.CompactionChange) string {
	var order []changeKind
	messages := map[changeKind]uint64{}
	for _, c := range changes {
		kind := changeKindOf(c)
		if c.GetMessages() == 0 || kind.verb == "" {
			continue
		}
		if messages[kind] == 0 {
			order = append(order, kind)
		}
		messages[kind] += uint64(c.GetMessages())
	}
	parts := make([]string, len(order))
	for i, kind := range order {
		parts[i] = kind.verb + " " + plural(messages[kind], kind.noun)
	}
	return strings.Join(parts, ", ")
}

func changeKindOf(c *harnessv1.CompactionChange) changeKind {
	noun := "message"
	switch c.GetClass() {
	case harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL, harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE, harnessv1.MessageClass_MESSAGE_CLASS_ANCHORING,
		harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE, harnessv1.MessageClass_MESSAGE_CLASS_RESULT:
		noun = "result"
	case harnessv1.MessageClass_MESSAGE_CLASS_MEDIA:
		noun = "media message"
	default: // any message
	}
	switch c.GetAction() {
	case harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR:
		return changeKind{"cleared", noun}
	case harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE:
		return changeKind{"externalised", noun}
	case harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE:
		return changeKind{"summarised", noun}
	case harnessv1.CompactionAction_COMPACTION_ACTION_DROP: // results and their calls
		return changeKind{"dropped", "message"}
	case harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN:
		return changeKind{"shortened", noun}
	default:
		return changeKind{}
	}
}

// leftOut returns how many messages the model does not see in full, in words if long; empty
// if it sees all.
func leftOut(u *harnessv1.ContextUsage, long bool) string {
	var parts []string
	total := uint64(0)
	for _, part := range []struct {
		n    uint32
		what string
	}{{u.GetCleared(), "cleared"}, {u.GetExternalized(), "externalised"}, {u.GetSummarized(), "summarised"}, {u.GetDropped(), "dropped"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
			total += uint64(part.n)
		}
	}
	if long || total == 0 {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%d compacted", total)
}
