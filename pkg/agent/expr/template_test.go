package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

func TestTemplateRendersValues(t *testing.T) {
	given := vars{"turn": uint32(3), "max_turns": 50, "seconds_elapsed": 5.5, "tool_usage": map[string]uint32{"b": 3, "a": 1, "c": 0}}
	for text, want := range map[string]string{
		"":                                  "",
		"nothing } } { here":                "nothing } } { here",
		"turn {{turn}} of {{ max_turns }}":  "turn 3 of 50",
		"{{ tool_usage }}":                  "a 1, b 3, c 0",
		"{{ tool_usage.map(k, k) }}.":       "a, b, c.",
		"{{ seconds_elapsed }}s":            "5.5s",
		"{{ seconds_elapsed * 2.0 }}s":      "11s",
		`{{ turn > 2 ? "late" : "early" }}`: "late",
		`{{ {"x": {"}}": 1}} }}!`:           "x }} 1!",
		`{{ "{{" }} {{ r'\' }} {{ '}}' }}`:  `{{ \ }}`,
		`{{ """a "quoted" }} one""" }}`:     `a "quoted" }} one`,
		"é {{ turn }}\n{{ null }}":          "é 3\nnull",
	} {
		template, err := Jit.Template(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := template.Render(given); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestTemplateReportsThePlaceOfAnError(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		message      string
	}{
		{"a {{ turn", 1, 3, "no }}"},
		{`{{ "turn }}`, 1, 1, "no }}"},
		{"a\nbé {{ nope }}", 2, 7, "nope"},
		{"a {{ turn +\n nope }}", 2, 2, "nope"},
		{"{{ }}", 1, 3, "empty"},
		{`{{ b"x" }}`, 1, 3, "bytes"},
		{strings.Repeat("x", maxTemplate+1), 0, 0, "8192"},
	} {
		_, err := Jit.Template(c.text)
		var at *fault.FieldError
		if !errors.As(err, &at) || at.Line != c.line || at.Column != c.column || !strings.Contains(at.Message, c.message) {
			t.Errorf("%.40q: %+v; want %d:%d …%s…", c.text, err, c.line, c.column, c.message)
		}
	}
}

func TestMissingValueInATemplateIsAnError(t *testing.T) {
	template, err := Tool.Template(`it says {{ args.command }}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Render(nil); err == nil {
		t.Errorf("renders %q", got)
	}
}

func TestRenderedTextIsLimited(t *testing.T) {
	template, err := State.Template(`{{ response }}{{ response }}{{ artifacts }}`)
	if err != nil {
		t.Fatal(err)
	}
	artifacts := map[string]string{}
	for i := range 100 {
		artifacts[fmt.Sprint(i)] = strings.Repeat("é", 1000)
	}
	for _, response := range []string{"", strings.Repeat("é", maxRendered)} {
		got, err := template.Render(vars{"response": response, "artifacts": artifacts})
		if err != nil || len(got) > maxRendered+len("…") || !strings.HasSuffix(got, "é…") {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}
