package narration_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

func FuzzNarration(f *testing.F) {
	for n, a := range labelledArtifacts(f) {
		if n%8 == 0 {
			f.Add(a.Content)
		}
	}
	for _, unit := range []string{"\"`“", "--- ", "I'll ", "Here is the plan:\n", "- I'll write it.\n", "TODO ", "[x] ", "save_artifact(", "```\n", "# a\n\n"} {
		f.Add(strings.Repeat(unit, 4<<10/len(unit)))
	}
	f.Add("\xff\xfe\n: \n```\n")
	f.Fuzz(func(t *testing.T, content string) {
		level, stripped, why := narration.Check(content)
		switch level {
		case narration.Clean:
			if stripped != content || why != "" {
				t.Errorf("clean, and %q because of %q", stripped, why)
			}
		case narration.Light:
			if strings.TrimSpace(stripped) == "" || stripped == content || why == "" || !strings.Contains(strings.ReplaceAll(content, "\r", ""), strings.ReplaceAll(stripped, "\r", "")) {
				t.Errorf("light: %q of %q because of %q", stripped, content, why)
			}
		default:
			if stripped != "" || why == "" {
				t.Errorf("heavy: %q because of %q", stripped, why)
			}
		}
		if len(why) > 1<<10 {
			t.Errorf("a reason of %d bytes", len(why))
		}
	})
}
