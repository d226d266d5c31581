package adapter_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

func TestChoose(t *testing.T) {
	choices := []string{"best-2", "best"}
	for _, c := range []struct {
		listed     []string
		want, says string
	}{
		{[]string{"whisper", "best", "best-2"}, "best-2", ""},
		{[]string{"whisper", "best-mini", "best"}, "best", ""},
		{[]string{"best-2-20260102", "best"}, "best-2-20260102", ""},
		{[]string{"models/best", "models/best-image"}, "models/best", ""},
		{[]string{"only"}, "only", ""},
		{[]string{"one", "best-3", "two"}, "", "p lists 3: one, best-3, two; name one with --model p:NAME"},
		{strings.Fields(strings.Repeat("m ", 40)), "", "and 28 more"},
		{nil, "", "the server lists none"},
	} {
		got, err := adapter.Choose("p", c.listed, choices)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q, %v", c.listed, got, err)
		}
	}
}
