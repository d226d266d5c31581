package judge

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

func TestOutside(t *testing.T) {
	web := &harnessv1.Web{Allow: []string{"a.example", "*.b.example"}}
	host := harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
	for name, c := range map[string]struct {
		tool, arguments string
		origin          harnessv1.ToolOrigin
		why             string
		each            bool
	}{
		"an allowed host":         {webtool.Fetch, `{"url":"https://a.example/x"}`, host, "", false},
		"one below":               {webtool.Fetch, `{"url":"http://x.b.example/x"}`, host, "", false},
		"another port":            {webtool.Fetch, `{"url":"http://a.example:8080"}`, host, "it reads from a.example:8080, which the run has not reached before", false},
		"another host":            {webtool.Request, `{"url":"http://c.example"}`, host, "it reads from c.example, which the run has not reached before", false},
		"HEAD":                    {webtool.Request, `{"url":"http://a.example","method":"HEAD"}`, host, "", false},
		"a method that writes":    {webtool.Request, `{"url":"http://a.example","method":"DELETE"}`, host, "it sends DELETE to a.example", true},
		"no address":              {webtool.Fetch, `{"url":"nothing"}`, host, "", false},
		"a search":                {webtool.Search, `{"query":"x"}`, host, "", false},
		"a client's tool of ours": {webtool.Fetch, `{"url":"http://c.example"}`, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT, "", false},
	} {
		why, each := outside(web, &harnessv1.ToolSpec{Name: c.tool, Origin: c.origin}, c.arguments)
		if why != c.why || each != c.each {
			t.Errorf("%s: %q, %v", name, why, each)
		}
	}
}
