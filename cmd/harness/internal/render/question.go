package render

import (
	"bytes"
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Question returns the text of a call of kind question and the answers to choose
// from, if there are any: the question of its server, or else that of its arguments. If those
// have no text it returns why the call waits.
func Question(p *harnessv1.PendingCall) (text string, options []string) {
	if p.GetQuestion() != nil {
		return serverQuestion(p.GetQuestion())
	}
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

// optionText returns an option: its text, or another value as JSON.
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
