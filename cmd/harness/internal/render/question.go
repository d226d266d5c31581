package render

import (
	"bytes"
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Question is what a call of kind question asks, and the answers that it offers
// to choose from, as its arguments say it; none for one that offers none. Of a
// call whose arguments say nothing it is why the call waits.
func Question(p *harnessv1.PendingCall) (text string, options []string) {
	var asked struct {
		Question string            `json:"question"`
		Options  []json.RawMessage `json:"options"`
	}
	if json.Unmarshal([]byte(p.GetArguments().GetInline()), &asked) == nil {
		for _, raw := range asked.Options {
			if option := optionText(raw); option != "" {
				options = append(options, option)
			}
		}
	}
	for _, text := range []string{asked.Question, p.GetWhy(), preview(p.GetArguments())} {
		if text = strings.TrimSpace(text); text != "" {
			return text, options
		}
	}
	return p.GetTool(), options
}

// optionText is what stands for an option: a text, or any other value as JSON.
func optionText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return ""
	}
	return out.String()
}
