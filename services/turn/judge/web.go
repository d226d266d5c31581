package judge

import (
	"encoding/json"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// maxShownHost bounds what an approval shows of a host, in bytes.
const maxShownHost = 300

// outside returns why a call of a web tool needs an approval; empty if it needs none. each is true
// if every call like it needs its own: an address can carry secrets out, and a method that writes
// has an effect.
func outside(web *harnessv1.Web, spec *harnessv1.ToolSpec, arguments string) (why string, each bool) {
	if !webtool.Visits(spec.GetName()) || spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
		return "", false
	}
	var given struct {
		URL    string `json:"url"`
		Method string `json:"method"`
	}
	_ = json.Unmarshal([]byte(arguments), &given) // its schema was checked
	_, site, err := webtool.ParseURL(given.URL)
	switch {
	case err != nil: // the tool host refuses it
		return "", false
	case !webtool.Reads(given.Method):
		return fmt.Sprintf("it sends %s to %s", content.Clip(given.Method, 20), content.Clip(site.String(), maxShownHost)), true
	case site.In(webtool.Allowed(web)):
		return "", false
	}
	return "it reads from " + content.Clip(site.String(), maxShownHost) + ", which the run has not reached before", false
}
