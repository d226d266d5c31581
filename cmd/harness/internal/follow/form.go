package follow

import (
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// Words that answer the question of a server as a whole.
const (
	declineWord = "/decline"
	cancelWord  = "/cancel"
)

// form is the dialogue about the question of a server: a line for each address and field.
type form struct {
	p    *Prompt
	call *harnessv1.PendingCall
	// request and field are the place of the present prompt.
	request, field int
	fields         [][]elicit.Field // of each request; nil for an address
	given          []map[string]json.RawMessage
}

// fill shows the question of a server and prompts for the first value.
func (p *Prompt) fill(call *harnessv1.PendingCall, asker string) *form {
	q := call.GetQuestion()
	who := "The server " + p.clean(q.GetServer())
	if asker != "" {
		who += ", for the " + p.clean(asker) + ","
	}
	text, _ := render.Question(call)
	p.print("\n%s asks, in its words:\n", who)
	p.indented(text)
	f := &form{p: p, call: call}
	f.restart()
	return f
}

// restart prompts for the first value again.
func (f *form) restart() {
	f.request, f.field, f.fields, f.given = 0, 0, nil, nil
	for _, r := range f.call.GetQuestion().GetRequests() {
		var fields []elicit.Field
		if r.Schema != nil {
			fields, _ = elicit.Fields(r.GetSchema().GetInline()) // a form without its text takes JSON by another way
		}
		f.fields, f.given = append(f.fields, fields), append(f.given, map[string]json.RawMessage{})
	}
	f.prompt()
}

// prompt asks for the present value.
func (f *form) prompt() {
	first := f.request == 0 && f.field == 0
	hint := "Enter to skip"
	if first {
		hint = "Enter to leave it open, " + declineWord + " or " + cancelWord
	}
	fields := f.fields[f.request]
	if len(fields) == 0 {
		if !first {
			hint = "needed"
		}
		f.p.print("done? (%s): ", hint)
		return
	}
	field := fields[f.field]
	for i, option := range render.Choices(field) {
		f.p.print("  [%d] %s\n", i+1, render.Short(option, 300))
	}
	if field.Required && !first {
		hint = "needed"
	}
	f.p.print("%s (%s): ", render.Short(content.Visible(field.Name), 80), hint)
}

// take takes a line. done is true once answer is complete, or nil because the user leaves the
// question open.
func (f *form) take(line string) (answer *harnessv1.ToolAnswer, done bool) {
	answer = &harnessv1.ToolAnswer{CallId: f.call.GetCallId(), Round: f.call.GetQuestion().GetRound(), Result: content.Inline("")}
	first := f.request == 0 && f.field == 0
	switch word := strings.TrimSpace(line); {
	case word == declineWord:
		answer.Action = harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
		return answer, true
	case word == cancelWord:
		answer.Action = harnessv1.AnswerAction_ANSWER_ACTION_CANCEL
		return answer, true
	case word == "" && first:
		return nil, true
	}
	if !f.store(line) {
		f.prompt()
		return nil, false
	}
	if f.field++; f.field >= len(f.fields[f.request]) {
		f.request, f.field = f.request+1, 0
	}
	if f.request < len(f.fields) {
		f.prompt()
		return nil, false
	}
	answer.Result = content.Inline(f.text())
	return answer, true
}

// store keeps a value; !ok: it does not fit.
func (f *form) store(line string) (ok bool) {
	fields := f.fields[f.request]
	if len(fields) == 0 {
		if !strings.EqualFold(strings.TrimSpace(line), elicit.Done) {
			f.p.print("  answer done, once you have visited the address\n")
			return false
		}
		return true
	}
	field := fields[f.field]
	text := Chosen(line, render.Choices(field))
	if text == "" {
		if field.Required {
			f.p.print("  it is needed\n")
		}
		return !field.Required
	}
	value, err := elicit.Value(field, text)
	if err != nil {
		f.p.print("  %s\n", f.p.clean(err.Error()))
		return false
	}
	f.given[f.request][field.Name] = value
	return true
}

// text returns the answer in the form that the gateway takes.
func (f *form) text() string {
	all := map[string]any{}
	for i, r := range f.call.GetQuestion().GetRequests() {
		var value any = f.given[i]
		if r.Url != nil {
			value = elicit.Done
		}
		all[r.GetId()] = value
		if len(f.given) > 1 {
			continue
		}
		if r.Url != nil {
			return elicit.Done
		}
		data, _ := json.Marshal(f.given[i]) // valid values
		return string(data)
	}
	data, _ := json.Marshal(all)
	return string(data)
}

// answerForm takes a line of the answer to the question of a server.
func (f *follower) answerForm(ctx context.Context, line string) error {
	a := &f.asking
	call := a.calls[0]
	answer, done := a.form.take(line)
	if !done {
		a.lines = f.Prompt.read()
		return nil
	}
	if answer != nil {
		err := f.reply(ctx, call, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: answer}})
		if status.Code(err) == codes.InvalidArgument {
			f.Prompt.print("  %s\n", f.Prompt.clean(status.Convert(err).Message()))
			a.form.restart()
			a.lines = f.Prompt.read()
			return nil
		}
		if err != nil {
			return err
		}
	}
	a.resolve(keyOf(call))
	if answer == nil && !a.open() && len(f.awaiting) == 0 {
		f.out.Result = a.park
	}
	f.next()
	return nil
}
