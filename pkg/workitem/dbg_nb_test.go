package workitem

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDbgNB(t *testing.T) {
	for _, f := range []string{"testdata/dev.jsonl", "testdata/dev2.jsonl"} {
		b, _ := os.ReadFile(f)
		tp, fp, fn, lv, st := 0, 0, 0, 0, 0
		for _, raw := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var a struct{ ID, Kind, Note, Label, Level, Content, Stripped string }
			json.Unmarshal([]byte(raw), &a)
			want := a.Label + a.Level
			got, s, why := Narration(a.Content)
			switch {
			case want != "CLEAN" && got == Clean:
				fn++
				fmt.Println("MISS", a.ID, want, a.Note+a.Kind)
			case want == "CLEAN" && got != Clean:
				fp++
				fmt.Println("FP", a.ID, got, a.Note, why)
			case want != "CLEAN":
				tp++
				if got.String() != want {
					lv++
					fmt.Println("LEVEL", a.ID, got, "want", want, why)
				} else if got == Light && s != a.Stripped && strings.TrimSpace(s) != strings.TrimSpace(a.Stripped) {
					st++
					fmt.Println("STRIP", a.ID, why)
				}
			}
		}
		fmt.Printf("%s P %.3f R %.3f tp %d fp %d fn %d level %d strip %d\n", f, float64(tp)/float64(tp+fp), float64(tp)/float64(tp+fn), tp, fp, fn, lv, st)
	}
}
