package openai

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// strictTalk is a conversation with messages of the user and media after results.
func strictTalk() []*harnessv1.Message {
	said := func(text string) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline(text)}
	}
	result := func(id string, parts ...*harnessv1.Part) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, Content: content.Inline("r"), Parts: parts}
	}
	shown := mediaPart("image/png", "", "PNG")
	return []*harnessv1.Message{
		said("go"),
		answered("", 2), result("a"), result("b"), said("1"), said("2"),
		answered("", 1), result("a", shown), said("3"),
		answered("", 1), result("a"),
		answered("", 1), result("a", shown),
		answered("done", 0), said("4"),
	}
}

// roles returns the roles of the messages of a request, a letter for each; b is the answer
// between results and a message of the user.
func roles(request string) string {
	letters := strings.NewReplacer(`{"role":"assistant","content":"Understood."}`, "\x00b", `{"role":"assistant"`, "\x00a", `{"role":"user"`, "\x00u", `{"role":"tool"`, "\x00t")
	var order strings.Builder
	for _, m := range strings.Split(letters.Replace(request), "\x00")[1:] {
		order.WriteByte(m[0])
	}
	return order.String()
}

func TestUserAfterResults(t *testing.T) {
	talk := strictTalk()
	for want, c := range map[string]Config{
		"uattbuuatbuuatatbuau": {NoUserAfterResults: true},
		"uattuuatuuatatuau":    {},
	} {
		former := ""
		for i := range talk {
			got := encoded(t, c, talk[:i+1]...)
			if !strings.HasPrefix(got, former) {
				t.Errorf("the request with %d messages does not begin with the former one:\n%s\n%s", i+1, got, former)
			}
			former = got
		}
		if got := roles(former); got != want {
			t.Errorf("%+v: messages %s, want %s: %s", c, got, want, former)
		}
	}
}

// TestAnswerBetweenHasReasoning has a server that demands reasoning in each answer.
func TestAnswerBetweenHasReasoning(t *testing.T) {
	c := Config{NoUserAfterResults: true, Reasoning: Reasoning{Field: "reasoning", Back: BackAlways, Blank: " ", HasBlank: true}}
	if got := encoded(t, c, strictTalk()...); strings.Count(got, `{"role":"assistant","content":"Understood.","reasoning":" "}`) != 3 {
		t.Error(got)
	}
}

func TestShortCallIDs(t *testing.T) {
	short := map[string]string{
		"aB3456789": "aB3456789", "zZ0000009": "zZ0000009",
		// Stored conversations must keep these: a request begins with the former one.
		"call_0fypS1hVX": "BYk556bBH", "a": "ObhidonGO", "": "klZHOI1Sz", "aB345678": "RjYqbiVwN", "aB34567890": "0up7lQAyP", "aB345678_": "FsuA0Mror", "aB34567é": "BRk34M49H",
	}
	seen := map[string]string{}
	for id, want := range short {
		m := answered("", 1)
		m.ToolCalls[0].Id = id
		result := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, Content: content.Inline("r"), Parts: []*harnessv1.Part{mediaPart("image/png", "", "PNG")}}
		for replaced, sent := range map[bool]string{true: want, false: id} {
			got := encoded(t, Config{ShortCallIDs: replaced}, m, result)
			for _, place := range []string{`"tool_calls":[{"id":"` + sent + `"`, `"tool_call_id":"` + sent + `"`, `result of tool call ` + sent + `:`} {
				if !strings.Contains(got, place) {
					t.Errorf("%q with %t: %s is not in %s", id, replaced, place, got)
				}
			}
		}
		if !isShort(want) || seen[want] != "" {
			t.Errorf("%q becomes %q, as %q does", id, want, seen[want])
		}
		seen[want] = id
	}
}
