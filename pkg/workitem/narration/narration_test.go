package narration_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

// artifact is an artifact with its label.
type artifact struct {
	ID       string `json:"id"`
	Content  string `json:"content"`
	Level    string `json:"level"`
	Label    string `json:"label"` // the level, in the first set
	Stripped string `json:"stripped"`
	// Other is a second acceptable rest.
	Other string `json:"stripped_alt"`
}

// labelledArtifacts are those of the first set.
func labelledArtifacts(t testing.TB) []artifact {
	t.Helper()
	return labelledFile(t, "testdata/dev.jsonl")
}

func labelledFile(t testing.TB, file string) []artifact {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []artifact
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var a artifact
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s, case %d: %v", file, len(all)+1, err)
		}
		a.Level += a.Label
		all = append(all, a)
	}
	return all
}

// TestNarrationInLabelledArtifacts measures the check. The sets dev to dev4 are to develop it.
// The sets heldout and fresh were labelled without it, and are only measured: a change of the
// check for one of their artifacts needs a new set.
func TestNarrationInLabelledArtifacts(t *testing.T) {
	others := map[string]string{} // a second text that may as well remain
	for _, file := range []string{"testdata/dev2-alternatives.jsonl", "testdata/heldout-alternatives.jsonl"} {
		for _, a := range labelledFile(t, file) {
			others[a.ID] = a.Other + a.Stripped
		}
	}
	for _, set := range []struct {
		name              string
		precision, recall float64
		others, atLeast   int
		unseen            bool
	}{
		{"dev", 0.99, 0.99, 1, 300, false},
		{"dev2", 0.99, 0.99, 0, 100, false},
		{"dev3", 0.97, 0.98, 1, 200, false},
		{"dev4", 1, 0.90, 9, 400, false},
		{"heldout", 0.96, 0.90, 2, 90, true},
		{"fresh", 0.96, 0.82, 1, 60, true},
	} {
		t.Run(set.name, func(t *testing.T) {
			var found, missed, wrong, other int
			for _, a := range labelledFile(t, "testdata/"+set.name+".jsonl") {
				got, stripped, why := narration.Check(a.Content)
				fault := ""
				switch contaminated := a.Level != "CLEAN"; {
				case contaminated && got == narration.Clean:
					missed++
					fault = "missed"
				case !contaminated && got != narration.Clean:
					wrong++
					fault = "clean, and found because of " + why
				case contaminated:
					found++
					if got.String() != a.Level || got == narration.Light && stripped != strings.Trim(a.Stripped, "\n") && stripped != others[a.ID] {
						other++
						fault = "another level or rest: " + got.String() + " because of " + why
					}
				}
				if fault != "" && set.unseen {
					t.Log(a.ID)
				} else if fault != "" {
					t.Logf("%s: %s\n%s", a.ID, fault, a.Content)
				}
			}
			precision, recall := float64(found)/float64(found+wrong), float64(found)/float64(found+missed)
			t.Logf("precision %.3f, recall %.3f, %d at another level or with another rest", precision, recall, other)
			if precision < set.precision || recall < set.recall || other > set.others {
				t.Errorf("precision %.3f (at least %.2f), recall %.3f (at least %.2f), %d at another level or with another rest (at most %d)",
					precision, set.precision, recall, set.recall, other, set.others)
			}
			if found+missed < set.atLeast {
				t.Errorf("%d artifacts with narration are too few to say anything", found+missed)
			}
		})
	}
}

func TestNarrationBetweenTheParagraphsOfALetterIsHeavy(t *testing.T) {
	letter := "Dear Anna,\n\nthe harvest was good.\n\nI'll write the next paragraph of the letter now.\n\nWe picked for nine days.\n\n" +
		"Next, I'll add the closing to the letter.\n\nYours,\nMaud"
	level, _, why := narration.Check(letter)
	if level != narration.Heavy || !strings.Contains(why, "line 5") {
		t.Errorf("%s: %s", level, why)
	}
}

func TestLetterMayInviteAndPromise(t *testing.T) {
	for _, letter := range []string{
		"Dear Anna,\n\nI've attached the report you asked for. I'll write the second part next week.\n\nWould you like me to call?\n\nYours,\nMaud",
		"Sehr geehrte Frau Lehner,\n\nanbei der gewünschte Bericht. Soll ich ihn auch drucken?\n\nMit freundlichen Grüßen\nThomas Birk",
		"Bonjour Paul,\n\nVoici le rapport que tu m'as demandé. Dis-moi si tu veux autre chose.\n\nÀ bientôt,\nLéa",
		"Hola, Lucía:\n\nTe adjunto el informe que me pediste. ¿Quieres que añada los gráficos?\n\nUn abrazo,\nIván",
	} {
		if level, _, why := narration.Check(letter); level != narration.Clean {
			t.Errorf("%s because of %s:\n%s", level, why, letter)
		}
	}
}

// The name of a tool of the harness outside of code, and the hand-over of a whole product,
// are narration at the edges of an artifact.
func TestToolsAndWholeProductsAreNarration(t *testing.T) {
	body := "# Findings\n\nThe cache is cold at start.\n\nThe pool is too small.\n\nBoth cost 40 ms."
	for line, head := range map[string]bool{
		"After this I will call task_complete.":                 false,
		"Then work_item_update sets the item to DONE.":          false,
		"The following is the complete analysis.":               true,
		"The following is the complete analysis":                true,
		"The following is the complete analysis of the outage:": true,
	} {
		text := body + "\n\n" + line
		if head {
			text = line + "\n\n" + body
		}
		if level, stripped, why := narration.Check(text); level != narration.Light || stripped != body {
			t.Errorf("%s: %s (%s), stripped to\n%s", line, level, why, stripped)
		}
	}
	for _, text := range []string{
		body + "\n\nThe harness waits for `work_complete`, and then it ends.",
		"import harness\n\ndef run(agent):\n    agent.call()\n    return task_complete(agent)\n\ntask_complete = harness.done\nprint(task_complete)\n",
	} {
		if level, _, why := narration.Check(text); level != narration.Clean {
			t.Errorf("%s because of %s:\n%s", level, why, text)
		}
	}
}

func TestSavedTextBetweenContentIsNarration(t *testing.T) {
	for _, line := range []string{"I've saved the report to report.md.", "I have written the summary to notes/summary.md."} {
		text := "# Findings\n\nThe cache is cold.\n\n" + line + "\n\nThe pool is too small.\n"
		if level, _, why := narration.Check(text); level != narration.Heavy || !strings.Contains(why, "line 5") {
			t.Errorf("%s: %s: %s", line, level, why)
		}
	}
	personal := "# My week\n\nI keep a diary.\n\nI've saved the report to a drawer.\n\nMy dog is too small.\n"
	if level, _, why := narration.Check(personal); level != narration.Clean {
		t.Errorf("a text that says I: %s because of %s", level, why)
	}
}

func TestSentenceBetweenRecordsIsNarration(t *testing.T) {
	csv := "id,name,qty\n1,bolt,40\n2,nut,38\n3,washer,90\nHere are the remaining rows you requested:\n4,pin,12\n5,clip,77\n6,ring,31"
	if level, _, why := narration.Check(csv); level != narration.Heavy || !strings.Contains(why, "line 5") {
		t.Errorf("%s: %s", level, why)
	}
}

func BenchmarkNarrationOf8KB(b *testing.B) {
	for _, text := range []struct{ name, lines string }{
		{"prose", "The valve leaks at high tide, and the motor is as sound as it was when the station was built.\n\n"},
		{"first person", "I've kept the report you sent me, and I'll write the second part of it as you asked. Let me know if you want it.\n\n"},
		{"one line", "I've kept the report you sent me, and I'll write the second part of it as you asked. "},
		{"code", "\tif err := file.Close(); err != nil {\n\t\treturn fmt.Errorf(\"close the file: %w\", err)\n\t}\n"},
	} {
		content := strings.Repeat(text.lines, 8<<10/len(text.lines))
		b.Run(text.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				narration.Check(content)
			}
		})
	}
}
