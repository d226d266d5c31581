package shown_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

func showArguments(t *testing.T, limit uint32, text string) string {
	t.Helper()
	return show(t, newStore(), limit, true, call(content.Inline(text))).GetToolCalls()[0].GetArguments().GetInline()
}

// TestArgumentsKeepTheirShape: only long values change, whatever surrounds them.
func TestArgumentsKeepTheirShape(t *testing.T) {
	long := strings.Repeat(`a \"quoted\" line of {\"text\": 1}\n`, 400)
	name := strings.Repeat("a long name ", 100)
	text := `{ "z" : "` + long + `", "a":[1.50, -0, 1e400, "short", "` + long + `" , {"path":"a.txt","` + name + `": "\u00e9"} ], "z":null}`
	got := showArguments(t, 300, text)
	parts := strings.Split(got, ` bytes left out here; call read_artifact with ref m9 to read them]\n`)
	if !json.Valid([]byte(got)) || len(parts) != 3 {
		t.Fatalf("shown %s", got)
	}
	if !strings.HasPrefix(got, `{ "z" : "a \"quoted\" line`) || !strings.Contains(parts[1], `line of {\"text\": 1}\n", "a":[1.50, -0, 1e400, "short", "a \"quoted\" line`) ||
		!strings.HasSuffix(parts[2], `{\"text\": 1}\n" , {"path":"a.txt","`+name+`": "\u00e9"} ], "z":null}`) {
		t.Errorf("shown %s", got)
	}
}

// TestArgumentsWithoutStringsAreUnchanged: a model may write any JSON, also a long list of
// numbers.
func TestArgumentsWithoutStringsAreUnchanged(t *testing.T) {
	for _, text := range []string{"[" + strings.Repeat("1,", 3000) + "1]", strings.Repeat("1", 3000), strings.Repeat(" ", 3000) + "{}"} {
		if got := showArguments(t, 300, text); got != text {
			t.Errorf("shown %s", got)
		}
	}
}

// TestStringsAreBoundAsTheyAreSent: what escapes of a string need counts too.
func TestStringsAreBoundAsTheyAreSent(t *testing.T) {
	for name, text := range map[string]string{"line breaks": strings.Repeat("\n", 3000), "controls": strings.Repeat("\x01\"", 2000), "markup": strings.Repeat("<&>", 2000)} {
		const limit = 500
		var got struct{ Content json.RawMessage }
		if err := json.Unmarshal([]byte(showArguments(t, limit, arguments(text))), &got); err != nil {
			t.Fatal(err)
		}
		if n := tokens.Count(model, string(got.Content)); n > limit || n < limit/3 {
			t.Errorf("%s: %d tokens are shown, at most %d may be: %s", name, n, limit, got.Content)
		}
	}
}

// TestInvalidArgumentsRemainInvalid: they are sent as a string that names them so.
func TestInvalidArgumentsRemainInvalid(t *testing.T) {
	for name, text := range map[string]string{
		"cut off":     `{"content":"` + strings.Repeat("text ", 1000),
		"no JSON":     strings.Repeat("content: text\n", 1000),
		"two objects": arguments(lines(300)) + arguments(lines(300)),
		"a break":     `{"content":"` + lines(500) + `"}`,
	} {
		got := showArguments(t, 200, text)
		if json.Valid([]byte(got)) || tokens.Count(model, got) > 200 || !strings.Contains(got, "bytes left out here") || got[:10] != text[:10] {
			t.Errorf("%s: %q", name, got)
		}
	}
	blank := strings.Repeat(" \n\t", 1000)
	if got := showArguments(t, 60, blank); got != blank {
		t.Errorf("blank arguments are shown as %q", got)
	}
}

// TestAnyArguments compares any JSON with its shown form, token by token.
func TestAnyArguments(t *testing.T) {
	const limit = 60
	rapid.Check(t, func(t *rapid.T) {
		text := anyJSON(t, 3)
		m := call(content.Inline(text))
		all, err := shown.New(newStore().blob, 1<<20).Messages(t.Context(), run, model, limit, true, []*harnessv1.Message{m})
		if err != nil {
			t.Fatal(err)
		}
		got := all[0].GetToolCalls()[0].GetArguments().GetInline()
		was, is := jsonTokens(t, text), jsonTokens(t, got)
		if len(was) != len(is) {
			t.Fatalf("%s became %s", text, got)
		}
		for i := range was {
			long, short := was[i], is[i]
			if long == short {
				continue
			}
			if s, ok := short.(string); !ok || len(fmt.Sprint(long)) < limit/6 || !strings.Contains(s, "bytes left out here") {
				t.Fatalf("%v became %v", long, short)
			}
		}
	})
}

// anyJSON draws a JSON value with strings around the limit.
func anyJSON(t *rapid.T, depth int) string {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.String(), func(s string) string { return strings.Repeat(s+"\n", 40) }))
	quoted := func(s string) string {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	var parts []string
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"1", "-2.50", "1e9", "true", "false", "null"}).Draw(t, "value")
	case 1, 2:
		return quoted(text.Draw(t, "text"))
	case 3:
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			parts = append(parts, anyJSON(t, depth-1))
		}
		return "[" + strings.Join(parts, space.Draw(t, "space")+",") + "]"
	default:
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			parts = append(parts, quoted(text.Draw(t, "name"))+space.Draw(t, "space")+":"+space.Draw(t, "space")+anyJSON(t, depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
}

// jsonTokens returns the tokens of JSON: delimiters, names and values.
func jsonTokens(t *rapid.T, text string) []any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var all []any
	for d.More() || len(all) == 0 {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, token)
		for !d.More() { // the end of an array, an object or the whole
			if token, err = d.Token(); err != nil {
				return all
			}
			all = append(all, token)
		}
	}
	return all
}
