package elicit_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

const (
	trip = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","minLength":2},"nights":{"type":"integer","maximum":30},
		"class":{"type":"string","oneOf":[{"const":"1","title":"First"},{"const":"2","title":"Second"}]},"extras":{"type":"array","items":{"type":"string","enum":["tea","wine"]}}}}`
	sure  = `{"type":"object","required":["sure"],"properties":{"sure":{"type":"boolean"}}}`
	count = `{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}`
)

func form(id, schema string) *harnessv1.ServerRequest {
	return &harnessv1.ServerRequest{Id: id, Message: content.Inline("?"), Schema: content.Inline(schema)}
}

func visit(id, address string) *harnessv1.ServerRequest {
	return &harnessv1.ServerRequest{Id: id, Message: content.Inline("?"), Url: content.Inline(address)}
}

func question(requests ...*harnessv1.ServerRequest) *harnessv1.ServerQuestion {
	return &harnessv1.ServerQuestion{Server: "s", Round: 1, Requests: requests}
}

func TestQuestionsAreBounded(t *testing.T) {
	pay := "https://example.com/pay"
	many := question()
	for i := range elicit.MaxRequests + 1 {
		many.Requests = append(many.Requests, visit(strings.Repeat("a", i+1), pay))
	}
	state := func(n int) *harnessv1.ServerQuestion {
		q := question(form("a", trip))
		q.State = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: make([]byte, n)}}
		return q
	}
	late := question(form("a", trip))
	late.Round = elicit.MaxRounds + 1
	long := visit("a", pay)
	long.Message = content.Inline(strings.Repeat("x", 4<<10+1))
	both := form("a", trip)
	both.Url = content.Inline(pay)
	fields := `{"type":"object","properties":{"a":{"type":"string"}`
	for i := range elicit.MaxFields {
		fields += `,"f` + strings.Repeat("x", i) + `":{"type":"string"}`
	}
	for name, c := range map[string]struct {
		q    *harnessv1.ServerQuestion
		want string
	}{
		"a form":                   {question(form("a", trip)), ""},
		"an address":               {question(visit("a", pay)), ""},
		"the largest state":        {state(elicit.MaxState), ""},
		"nothing":                  {question(), "asks nothing"},
		"nil":                      {nil, "asks nothing"},
		"too many":                 {many, "it asks 9 things"},
		"a larger state":           {state(elicit.MaxState + 1), "its state has 65537 bytes"},
		"too often":                {late, "more than 10 times"},
		"one id twice":             {question(form("a", trip), visit("a", pay)), "two requests have the id"},
		"no id":                    {question(form("", trip)), "the id"},
		"an id that controls":      {question(form("a\x1b[2J", trip)), "printable"},
		"a long message":           {question(long), "its message has 4097 bytes"},
		"a form and an address":    {question(both), "either a form or an address"},
		"a file":                   {question(visit("a", "file:///etc/passwd")), "is not the address of a web page"},
		"a script":                 {question(visit("a", "javascript:alert(1)")), "is not the address of a web page"},
		"a password":               {question(visit("a", "https://bank.example@evil.example/")), "is not the address of a web page"},
		"a text that runs back":    {question(visit("a", "https://example.com/\u202etxt")), "is not the address of a web page"},
		"no JSON":                  {question(form("a", "{")), "not valid JSON"},
		"a list":                   {question(form("a", `{"type":"array"}`)), "expected object"},
		"a form in a form":         {question(form("a", `{"type":"object","properties":{"b":{"type":"object"}}}`)), `its field "b" has the type "object"`},
		"a field without a type":   {question(form("a", `{"type":"object","properties":{"b":{}}}`)), `its field "b" has the type ""`},
		"a field that is missing":  {question(form("a", `{"type":"object","required":["b"],"properties":{}}`)), `needs the field "b"`},
		"too many fields":          {question(form("a", fields+"}}")), "its form has 33 fields"},
		"a large form":             {question(form("a", `{"title":"`+strings.Repeat("x", 16<<10)+`"}`)), "more than the limit of 16384"},
		"a list without a choice":  {question(form("a", `{"type":"object","properties":{"b":{"type":"array","items":{"type":"string"}}}}`)), "is a list without options"},
		"options that are objects": {question(form("a", `{"type":"object","properties":{"b":{"type":"string","enum":[{}]}}}`)), "is not a text, a number"},
	} {
		err := elicit.Check(c.q)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && (len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x1b\u202e")) {
			t.Errorf("%s: %q is no line to print", name, err)
		}
	}
}

// defaults is a form whose fields have defaults.
const defaults = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","default":"Rome"},"nights":{"type":"integer","default":2}}}`

func TestAnswersFitTheQuestion(t *testing.T) {
	accept, decline, closed := harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE, harnessv1.AnswerAction_ANSWER_ACTION_CANCEL
	one, url, two := question(form("a", trip)), question(visit("p", "https://example.com")), question(visit("p", "https://example.com"), form("q", sure))
	for _, c := range []struct {
		q      *harnessv1.ServerQuestion
		answer *harnessv1.ToolAnswer
		text   string
		want   string // ID=ACTION CONTENT, or a part of the error
		failed bool
	}{
		{one, nil, `{"city":"Rome"}`, `a=ACCEPT {"city":"Rome"}`, false},
		{one, nil, "Rome", `a=ACCEPT {"city":"Rome"}`, false},
		{one, nil, " Rome, and \"more\"", `a=ACCEPT {"city":" Rome, and \"more\""}`, false},
		{one, nil, "R", "result: city: minLength", true},
		{one, nil, `{}`, "result: missing property 'city'", true},
		{one, nil, `{"city":"Rome","nights":31}`, "result: nights: maximum", true},
		{one, nil, `{"city":"Rome","nights":"two"}`, "result: nights: got string, want integer", true},
		{one, nil, `{"city":"Rome","class":"3"}`, "result: class: ", true},
		{one, nil, `{"city":"Rome","extras":["beer"]}`, "result: extras.0: value must be one of", true},
		{one, nil, `{"city":"Rome","hotel":true}`, "result: hotel: the form has no such field", true},
		{one, nil, `{"city":"Rome","city":"Oslo"}`, "a=ACCEPT", false}, // no object: a text for the one field that is needed
		{one, &harnessv1.ToolAnswer{IsError: true}, "no", "a=DECLINE ", false},
		{one, &harnessv1.ToolAnswer{Action: decline}, "", "a=DECLINE ", false},
		{one, &harnessv1.ToolAnswer{Action: closed}, `{"city":"Rome"}`, "a=CANCEL ", false},
		{one, &harnessv1.ToolAnswer{Action: accept, IsError: true}, "Rome", "is_error", true},
		{one, &harnessv1.ToolAnswer{Action: 9}, "Rome", "action: must be", true},
		{one, &harnessv1.ToolAnswer{Media: []*harnessv1.Media{{}}}, "Rome", "media: ", true},
		{question(form("a", sure)), nil, "yes", `a=ACCEPT {"sure":true}`, false},
		{question(form("a", sure)), nil, "No\n", `a=ACCEPT {"sure":false}`, false},
		{question(form("a", sure)), nil, "maybe", "result: sure: must be yes or no", true},
		{question(form("a", count)), nil, "2.50", `a=ACCEPT {"n":2.50}`, false},
		{question(form("a", count)), nil, "two", "result: n: must be a number", true},
		{question(form("a", count)), nil, "1e999", "result: n: must be a number", true},
		{question(form("a", `{"type":"object"}`)), nil, "", `a=ACCEPT {}`, false},
		{question(form("a", defaults)), nil, "{}", `a=ACCEPT {"city":"Rome","nights":2}`, false},
		{question(form("a", defaults)), nil, `{"nights":3}`, `a=ACCEPT {"city":"Rome","nights":3}`, false},
		{question(form("a", strings.ReplaceAll(defaults, "2", `"two"`))), nil, `{"city":"Oslo"}`, `a=ACCEPT {"city":"Oslo"}`, false},
		{question(form("a", strings.ReplaceAll(defaults, "2", `"two"`))), nil, `{}`, `a=ACCEPT {"city":"Rome"}`, false},
		{question(form("a", strings.ReplaceAll(defaults, `"Rome"`, "null"))), nil, `{}`, "result: missing property 'city'", true},
		{question(form("a", `{"type":"object"}`)), nil, "hello", "must be {}", true},
		{url, nil, "done", "p=ACCEPT ", false},
		{url, nil, "", "p=ACCEPT ", false},
		{url, nil, "https://example.com", "result: must be done", true},
		{two, nil, `{"p":"done","q":"yes"}`, `p=ACCEPT  q=ACCEPT {"sure":true}`, false},
		{two, nil, `{"p":null,"q":{"sure":false}}`, `p=DECLINE  q=ACCEPT {"sure":false}`, false},
		{two, nil, `{"p":"done"}`, "result: q: missing", true},
		{two, nil, `{"p":"done","q":true,"r":1}`, "result: r: the server asks no such thing", true},
		{two, nil, `{"p":"done","p":"done","q":true}`, "result: must be a JSON object with an answer for each of p, q", true},
		{two, nil, "done", "result: must be a JSON object", true},
		{two, &harnessv1.ToolAnswer{Action: decline}, "", "p=DECLINE  q=DECLINE ", false},
	} {
		if c.answer == nil {
			c.answer = &harnessv1.ToolAnswer{}
		}
		responses, err := elicit.Responses(c.q, c.answer, c.text)
		var got []string
		for _, r := range responses {
			got = append(got, r.GetRequestId()+"="+strings.TrimPrefix(r.GetAction().String(), "ANSWER_ACTION_")+" "+r.GetContent().GetInline())
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if (err != nil) != c.failed || !strings.HasPrefix(text, c.want) && (!c.failed || !strings.Contains(text, c.want)) {
			t.Errorf("%v %q: %s, want %s", c.answer, c.text, text, c.want)
		}
	}
}

func TestChoicesAreNamedByTheirTitles(t *testing.T) {
	fields, err := elicit.Fields(trip)
	if err != nil || len(fields) != 4 || fields[0].Name != "city" || !fields[0].Required {
		t.Fatalf("%v, %v", fields, err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"class":  {"second", `"2"`},
		"extras": {"tea, WINE,", `["tea","wine"]`},
	} {
		for _, f := range fields {
			if f.Name != name {
				continue
			}
			if got, err := elicit.Value(f, c.text); err != nil || string(got) != c.want {
				t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
			}
		}
	}
}

// FuzzAnswers: whatever a server asks and a client answers, an accepted answer is valid, and the
// same again.
func FuzzAnswers(f *testing.F) {
	f.Add(trip, "Rome")
	f.Add(sure, `{"sure":true}`)
	f.Add(`{"type":"object","properties":{"":{"type":"array","items":{"enum":["a"]}}}}`, "a,a")
	f.Fuzz(func(t *testing.T, schema, text string) {
		q := question(form("a", schema))
		if elicit.Check(q) != nil {
			return
		}
		responses, err := elicit.Responses(q, &harnessv1.ToolAnswer{}, text)
		if err != nil {
			return
		}
		again, err := elicit.Responses(q, &harnessv1.ToolAnswer{}, responses[0].GetContent().GetInline())
		if err != nil || again[0].GetContent().GetInline() != responses[0].GetContent().GetInline() {
			t.Errorf("%q became %q, then %v, %v", text, responses[0].GetContent().GetInline(), again, err)
		}
	})
}
