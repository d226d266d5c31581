package render

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func pending(kind, tool, arguments string, left time.Duration) *harnessv1.PendingCall {
	p := &harnessv1.PendingCall{
		CallId: "c1", Tool: tool, Kind: kind, Arguments: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: arguments}},
	}
	if left != 0 {
		p.Deadline = timestamppb.New(now.Add(left))
	}
	return p
}

const day = 24 * time.Hour

func TestCallsThatWaitOnWideAndNarrowScreens(t *testing.T) {
	approval := pending("approval", "run_command", `{"command":"go test ./... -count=1"}`, 7*day-time.Second)
	approval.Why = "It runs a command."
	question := pending("question", "ask_user", `{"question":"Which colour shall the\nroof have?","options":["red","a very dark green"]}`, 90*time.Minute)
	question.Why = "Which colour shall the roof have?"
	review := pending("review", "run_command", `{"command":"make deploy"}`, 0)
	review.Why = "It deploys."
	asked := pending("question", "contract_question", `{"question":"Which colour?"}`, 0)
	asked.CallId, asked.Why = "contract:colour", "Which colour?"
	for name, test := range map[string]struct {
		waiting PendingCall
		width   int
		want    string
	}{
		"an approval, wide": {PendingCall{Call: approval, Command: "harness approve r1 c1", Or: "with --always"}, 0, `
waits for approval: run_command
    command: go test ./... -count=1
  It runs a command. · call c1 · expires in 6 d
  harness approve r1 c1
  or with --always`},
		"an approval, narrow": {PendingCall{Call: approval, Command: "harness approve r1 c1 --server unix:/tmp/somewhere", Or: "with --always, or --deny --reason WHY"}, 30, `
waits for approval:
    run_command
    command: go test ./... -
    ┆ count=1
  It runs a command. · call c1
    · expires in 6 d
  harness approve r1 c1 --server unix:/tmp/somewhere
  or with --always, or --deny
    --reason WHY`},
		"a question, wide": {PendingCall{Call: question, Run: "r1", Command: "harness answer r1 c1 ANSWER"}, 0, `
r1 asks: Which colour shall the roof have?
  [1] red
  [2] a very dark green
  call c1 · expires in 90 min
  harness answer r1 c1 ANSWER`},
		"a question, narrow": {PendingCall{Call: question, Command: "harness answer r1 c1 ANSWER"}, 20, `
asks: Which colour
    shall the roof
    have?
  [1] red
  [2] a very dark
    green
  call c1 · expires
    in 90 min
  harness answer r1 c1 ANSWER`},
		"a client's call without a deadline": {PendingCall{Call: pending("client_tool", "lookup_order", `{"id":12}`, 0), Command: "harness answer r1 c1 RESULT"}, 0, `
waits for its client: lookup_order id=12
  call c1
  harness answer r1 c1 RESULT`},
		"a review": {PendingCall{Call: review, Command: "harness approve r1 c1"}, 0, `
waits for a review: run_command
    command: make deploy
  It deploys. · call c1
  harness approve r1 c1`},
		"a question of the contract": {PendingCall{Call: asked, Command: "harness answer r1 contract:colour ANSWER"}, 0, `
asks: Which colour?
  call contract:colour
  harness answer r1 contract:colour ANSWER`},
		"a kind of a newer server": {PendingCall{Call: pending("vote", "x", `{}`, -time.Second)}, 0, `
waits (vote): x
  call c1 · expired`},
	} {
		lines := Style{UTF8: true, Width: test.width}.PendingLines(test.waiting, now)
		if got := "\n" + strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%s:%s\nwant:%s", name, got, test.want)
		}
		for _, line := range lines {
			if test.width > 0 && utf8.RuneCountInString(line) > test.width && !strings.Contains(line, test.waiting.Command) {
				t.Errorf("%s: wider than %d: %q", name, test.width, line)
			}
		}
	}
}

func TestWhatOthersWroteCannotMoveTheCursor(t *testing.T) {
	p := pending("question", "ask_user", `{"question":"a\u001b[2Jb","options":["c\u0007"]}`, 0)
	p.CallId = "c\x1b1"
	for _, line := range (Style{Width: 40}).PendingLines(PendingCall{Call: p, Run: "r\x1b"}, now) {
		if strings.ContainsAny(line, "\x1b\a\n") {
			t.Errorf("%q", line)
		}
	}
}

func TestWhatAQuestionAsks(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"question":" Which? ","options":["a"," ",3,{"b": 1}]}`: `Which?|a|3|{"b":1}`,
		`{"question":"","options":["a"]}`:                        "why|a",
		`{"options":"a"}`:                                        "why",
		`no JSON`:                                                "why",
	} {
		p := pending("question", "ask_user", arguments, 0)
		p.Why = "why"
		text, options := Question(p)
		if got := strings.Join(append([]string{text}, options...), "|"); got != want {
			t.Errorf("%s: %s, want %s", arguments, got, want)
		}
	}
	bare := pending("question", "ask_user", "no JSON", 0)
	if text, _ := Question(bare); text != "no JSON" {
		t.Errorf("%q", text)
	}
	if text, _ := Question(pending("question", "ask_user", "", 0)); text != "ask_user" {
		t.Errorf("%q", text)
	}
}

func TestWakeLine(t *testing.T) {
	at := func(left time.Duration) *harnessv1.HarnessResult {
		return &harnessv1.HarnessResult{WakeAt: timestamppb.New(now.Add(left))}
	}
	for want, r := range map[string]*harnessv1.HarnessResult{
		"":                   {},
		"resumes in 43 s":    at(42*time.Second + time.Millisecond),
		"resumes in 2 min":   at(2 * time.Minute),
		"resumes in 3 h":     at(3*time.Hour + 59*time.Minute),
		"resumes in 47 h":    at(2*day - time.Minute),
		"resumes in 2 d":     at(2 * day),
		"is about to resume": at(-time.Hour),
	} {
		if got := (Style{}).WakeLine(r, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	waits := at(time.Hour)
	waits.Pending = []*harnessv1.PendingCall{pending("approval", "x", "", time.Hour)}
	if got := (Style{}).WakeLine(waits, now); got != "" {
		t.Errorf("the deadline says it already: %q", got)
	}
}
