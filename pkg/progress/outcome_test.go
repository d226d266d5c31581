package progress_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// TestSignOutcome: which differences make another outcome, by the basis.
func TestSignOutcome(t *testing.T) {
	const found = "one line of the file"
	for _, c := range []struct {
		name                      string
		arguments, text           string
		arguments2, text2         string
		byArguments, byPlace, res bool // the outcomes are equal
	}{
		{"the same", `{"path":"a","limit":5}`, found, `{"limit":5,"path":"a"}`, found, true, true, true},
		{"another limit", `{"path":"a","limit":5}`, found, `{"path":"a","limit":17}`, found, false, true, true},
		{"another number in a command", `{"command":"sleep 5; run"}`, found, `{"command":"sleep 30; run"}`, found, false, true, true},
		{"another number in a comment", `{"command":"run # 5"}`, found, `{"command":"run # 6"}`, found, false, true, true},
		{"another option of a command", `{"command":"head -5 a | sort"}`, found, `{"command":"head -16 a | sort"}`, found, false, true, true},
		{"a fraction", `{"command":"sleep 0.5; run"}`, found, `{"command":"sleep 2; run"}`, found, false, true, true},
		{"another file with a number", `{"path":"part-1.txt"}`, found, `{"path":"part-2.txt"}`, found, false, false, true},
		{"another file that is a number", `{"path":"1"}`, found, `{"path":"2"}`, found, false, false, true},
		{"another command", `{"command":"run a"}`, found, `{"command":"run b"}`, found, false, false, true},
		{"another result", `{"path":"a"}`, found, `{"path":"a"}`, found + "s", false, false, false},
		{"a note, and another number", `{"command":"touch a1"}`, "[exit code 0]\n", `{"command":"touch a2"}`, "[exit code 0]\n", false, false, false},
		{"nothing, and another number", `{"command":"touch a1"}`, " ", `{"command":"touch a2"}`, " ", false, false, false},
		{"the same note", `{"command":"touch a1"}`, "[exit code 0]", `{"command":"touch a1"}`, "[exit code 0]", true, true, true},
		{"text with a note", `{"command":"run 1"}`, "ok\n[exit code 0]", `{"command":"run 2"}`, "ok\n[exit code 0]", false, true, true},
		{"a list is no note", `{"path":"a","limit":1}`, "[1, 2]", `{"path":"a","limit":2}`, "[1, 2]", false, true, true},
	} {
		a := progress.SignOutcome("tool", c.arguments, c.text, c.text)
		b := progress.SignOutcome("tool", c.arguments2, c.text2, c.text2)
		got := [...]bool{a[progress.ByArguments] == b[progress.ByArguments], a[progress.ByPlace] == b[progress.ByPlace], a[progress.ByResult] == b[progress.ByResult]}
		if got != [...]bool{c.byArguments, c.byPlace, c.res} {
			t.Errorf("%s: equal by arguments, place, result: %v", c.name, got)
		}
		if strict, _ := progress.Signature("tool", c.arguments, c.text); strict != a[progress.ByArguments] {
			t.Errorf("%s: the outcome by arguments is not the strict signature", c.name)
		}
		if other := progress.SignOutcome("other", c.arguments, c.text, c.text); other[progress.ByResult] == a[progress.ByResult] {
			t.Errorf("%s: the tool makes no difference", c.name)
		}
	}
}
