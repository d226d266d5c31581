package render

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
	externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
	summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
)

func change(action harnessv1.CompactionAction, class harnessv1.MessageClass, messages uint32) *harnessv1.CompactionChange {
	return &harnessv1.CompactionChange{Action: action, Class: class, Messages: messages}
}

// compactedPass is a pass that made use of three strategies.
func compactedPass() *harnessv1.CompactionCompleted {
	return &harnessv1.CompactionCompleted{
		TokensBefore: 122000, TokensAfter: 62400, FreedTokens: 59600, Duration: durationpb.New(12300 * time.Millisecond), Pass: 1,
		Strategies: []string{"clear", "externalize", "summarize"},
		Changes: []*harnessv1.CompactionChange{
			change(clearing, harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL, 4), change(clearing, harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE, 30),
			change(externalize, harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE, 2), change(summarize, harnessv1.MessageClass_MESSAGE_CLASS_SPAN, 41),
		},
	}
}

func TestLinesOfCompaction(t *testing.T) {
	plain := Style{UTF8: true}
	empty, failed, freed := compactedPass(), compactedPass(), compactedPass()
	empty.Strategies, empty.Changes, empty.FreedTokens = nil, nil, 0
	failed.Error, failed.Duration = "the summariser\ngave no answer", durationpb.New(900*time.Microsecond)
	freed.Changes = []*harnessv1.CompactionChange{
		change(clearing, harnessv1.MessageClass_MESSAGE_CLASS_MEDIA, 1), change(harnessv1.CompactionAction_COMPACTION_ACTION_DROP, harnessv1.MessageClass_MESSAGE_CLASS_RESULT, 1),
		change(harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN, harnessv1.MessageClass_MESSAGE_CLASS_RESULT, 0), change(99, 0, 3),
	}
	for want, c := range map[string]*harnessv1.CompactionCompleted{
		"compacted 122,000 → 62,400 tokens: cleared 34 results, externalised 2 results, summarised 41 messages (12.3s)": compactedPass(),
		"compaction freed nothing of 122,000 tokens": empty,
		"compacted 122,000 → 62,400 tokens: cleared 34 results, externalised 2 results, summarised 41 messages" +
			"; the summary could not be used: the summariser gave no answer": failed,
		"compacted 122,000 → 62,400 tokens: cleared 1 media message, dropped 1 message (12.3s)": freed,
	} {
		if got := plain.compacted(c); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for want, c := range map[string]*harnessv1.CompactionStarted{
		"": {Level: "blocking"},
		"a summary of older messages was requested; the agent continues\n":     {Level: "soft", Background: true, Job: "k"},
		"the context is full: the run waits for a summary of older messages\n": {Level: "blocking", Job: "k"},
	} {
		var out strings.Builder
		NewText(&out, plain, nil).Event(&harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: c}})
		if got := out.String(); got != want {
			t.Errorf("%v: got %q, want %q", c, got, want)
		}
	}
}

// TestTheGaugeShowsWhatWasLeftOut: in words, as a sum on a narrow terminal, and not at all
// where other gauges need the room.
func TestTheGaugeShowsWhatWasLeftOut(t *testing.T) {
	usage := &harnessv1.ContextUsage{UsedTokens: 62400, MaxInputTokens: 128000, Cleared: 34, Summarized: 41, Dropped: 1}
	for width, want := range map[int]string{140: "34 cleared, 41 summarised, 1 dropped", 80: "76 compacted", 40: ""} {
		s := newStage(width, 30, Style{UTF8: true})
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_ContextUsage{ContextUsage: usage}})
		s.after(0, 1, begun(1))
		if want == "" {
			s.after(0, 1, responded("", 1, 41000, 310, 54000))
		}
		screen := strings.Join(s.terminal.Screen(), "\n")
		if has := strings.Contains(screen, "compacted") || strings.Contains(screen, "cleared"); !strings.Contains(screen, want) || has != (want != "") {
			t.Errorf("%d columns: want %q in\n%s", width, want, screen)
		}
	}
}
