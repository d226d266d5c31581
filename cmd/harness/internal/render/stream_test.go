package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func piece(turn, attempt, try uint32, offset int, text string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: uint64(offset), Text: text}
}

// thought is a piece of reasoning.
func thought(turn, attempt, try uint32, offset int, text string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, ReasoningOffset: uint64(offset), Reasoning: text}
}

// shown plays pieces and a commit, with | where the text starts again.
func shown(commit string, pieces ...*harnessv1.Delta) string {
	var s stream
	var out strings.Builder
	put := func(restarted bool, text string) {
		if restarted {
			out.WriteString("|")
		}
		out.WriteString(text)
	}
	for _, d := range pieces {
		put(s.add(d, d.GetOffset(), d.GetText()))
	}
	put(s.commit(1, commit))
	put(s.add(piece(1, 9, 9, 0, "x"), 0, "after the commit"))
	return out.String()
}

func TestStream(t *testing.T) {
	for name, test := range map[string]struct {
		want, commit string
		pieces       []*harnessv1.Delta
	}{
		"in order":             {"abcd", "abcd", []*harnessv1.Delta{piece(1, 1, 1, 0, "ab"), piece(1, 1, 1, 2, "cd")}},
		"twice":                {"abc", "abc", []*harnessv1.Delta{piece(1, 1, 1, 0, "ab"), piece(1, 1, 1, 0, "ab"), piece(1, 1, 1, 1, "bc")}},
		"the commit has more":  {"abcd", "abcd", []*harnessv1.Delta{piece(1, 1, 1, 0, "ab")}},
		"only the commit":      {"abcd", "abcd", nil},
		"another try":          {"ab|xy", "xy", []*harnessv1.Delta{piece(1, 1, 1, 0, "ab"), piece(1, 1, 2, 0, "xy")}},
		"another attempt":      {"ab|ab", "ab", []*harnessv1.Delta{piece(1, 1, 2, 0, "ab"), piece(1, 2, 1, 0, "ab")}},
		"an old try":           {"xy", "xy", []*harnessv1.Delta{piece(1, 1, 2, 0, "xy"), piece(1, 1, 1, 0, "ab")}},
		"a gap":                {"abcd", "abcd", []*harnessv1.Delta{piece(1, 1, 1, 0, "a"), piece(1, 1, 1, 2, "c"), piece(1, 1, 1, 1, "b")}},
		"late":                 {"abcd", "abcd", []*harnessv1.Delta{piece(1, 1, 1, 2, "cd")}},
		"rewound":              {"abc|aX", "aX", []*harnessv1.Delta{piece(1, 1, 1, 0, "abc"), piece(1, 1, 1, 1, "X")}},
		"another text commits": {"abc|xyz", "xyz", []*harnessv1.Delta{piece(1, 1, 1, 0, "abc")}},
	} {
		if got := shown(test.commit, test.pieces...); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Whatever arrives, in whatever order and however often, what is shown after
// the last restart is the text that was committed.
func TestWhatIsShownInTheEndIsWhatWasCommitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commit := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "commit")
		var pieces []*harnessv1.Delta
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			pieces = append(pieces, piece(1, rapid.Uint32Range(1, 2).Draw(t, "attempt"), rapid.Uint32Range(1, 2).Draw(t, "try"),
				rapid.IntRange(0, 8).Draw(t, "offset"), rapid.StringMatching(`[ab]{0,4}`).Draw(t, "text")))
		}
		got := shown(commit, pieces...)
		if last := got[strings.LastIndex(got, "|")+1:]; last != commit {
			t.Fatalf("%q shows %q, committed was %q", got, last, commit)
		}
	})
}
