package progress_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

func TestCanonical(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[2,3]}`, `{ "b": [2, 3], "a": 1 }`, "{\"b\":[2,3],\n\"a\":1.0}", `{"a":10e-1,"b":[2,3]}`, `{"a":0,"a":1,"b":[2,3]}`},
		{`{"a":{"x":1,"y":{"p":null,"q":true}}}`, `{"a":{"y":{"q":true,"p":null},"x":1}}`},
		{``, ` `, `{}`, ` { } `},
		{`100`, `1e2`, `1E+2`, `100.0`, `1000e-1`},
		{`0`, `-0`, `0.0`, `0e99`},
		{`-0.5`, `-5e-1`, `-0.50`},
		{`"é<"`, `"\u00e9\u003c"`},
		{`123456789012345678901234567890`, `12345678901234567890123456789e1`},
	} {
		for _, text := range same[1:] {
			if progress.Canonical(text) != progress.Canonical(same[0]) {
				t.Errorf("%s is %s, but %s is %s", text, progress.Canonical(text), same[0], progress.Canonical(same[0]))
			}
		}
	}
	for _, pair := range [][2]string{
		{`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":1}`, `{"a":-1}`},
		{`{"a":null}`, `{}`},
		{`12345678901234567890`, `12345678901234567891`},
		{`1e400`, `1e401`},
		{`"e"`, `"é"`},
		{`["a,b"]`, `["a","b"]`},
	} {
		if progress.Canonical(pair[0]) == progress.Canonical(pair[1]) {
			t.Errorf("%s and %s are one", pair[0], pair[1])
		}
	}
	for _, text := range []string{`{"a":`, `{} {}`, `hello `, "\"\xff\"", `{'a':1}`} {
		if got := progress.Canonical(text); got != text {
			t.Errorf("what is no JSON, %q, became %q", text, got)
		}
	}
}

func TestSignatureDistinguishesCalls(t *testing.T) {
	type call struct{ tool, arguments, result string }
	calls := []call{
		{"a", `{"x":1}`, "r"}, {"a", `{"x":1}`, "s"}, {"a", `{"x":2}`, "r"}, {"b", `{"x":1}`, "r"},
		{"a", `{"x":1}r`, ""}, {"a{", `"x":1}`, "r"},
	}
	stricts, looses := map[uint64]bool{}, map[uint64]bool{}
	for _, c := range calls {
		strict, loose := progress.Signature(c.tool, c.arguments, c.result)
		stricts[strict], looses[loose] = true, true
	}
	if len(stricts) != 6 || len(looses) != 5 {
		t.Fatalf("%d strict and %d loose signatures, want 6 and 5", len(stricts), len(looses))
	}
	strict, loose := progress.Signature("a", `{"x":1,"y":2}`, "r")
	if s, l := progress.Signature("a", `{ "y": 2, "x": 1.0 }`, "r"); s != strict || l != loose {
		t.Fatal("the order of keys changes a signature")
	}
}

func TestCanonicalKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 3)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := progress.Canonical(string(text))
		var back any
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%s became %s: %v", text, got, err)
		}
		again, _ := json.Marshal(back)
		var plain any
		_ = json.Unmarshal(text, &plain)
		if want, _ := json.Marshal(plain); string(again) != string(want) {
			t.Fatalf("%s became %s", text, got)
		}
		if progress.Canonical(got) != got {
			t.Fatalf("%s is %s the second time", got, progress.Canonical(got))
		}
	})
}

func drawValue(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			m[rapid.String().Draw(t, "key")] = drawValue(t, depth-1)
		}
		return m
	case kind == 1 && depth > 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	case kind == 2:
		return rapid.Float64Range(-1e15, 1e15).Draw(t, "number") + 0 // no negative zero, which encoding/json keeps apart
	case kind == 3:
		return rapid.Bool().Draw(t, "bool")
	case kind == 4:
		return nil
	}
	return rapid.String().Draw(t, "text")
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,-0e9]}`, `1e999999999999999999999`, `{"a":`, "\xff", ``, `[[[[]]]]`, `-0.000e-5`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := progress.Canonical(text)
		if progress.Canonical(once) != once {
			t.Fatalf("%q becomes %q, and that %q", text, once, progress.Canonical(once))
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(once)) {
			t.Fatalf("%q is JSON, %q is not", text, once)
		}
	})
}
