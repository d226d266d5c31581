package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// sightOf returns the context of the fake's runs: at version 57 a request, at 60 one whose
// digest differs, at others what would be sent.
func sightOf(version uint64) *harnessv1.GetContextResponse {
	type item = harnessv1.ContextItem
	const (
		clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
		externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
		summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
		drop        = harnessv1.CompactionAction_COMPACTION_ACTION_DROP
		shorten     = harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN

		replayable = harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE
		nonReplay  = harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE
		span       = harnessv1.MessageClass_MESSAGE_CLASS_SPAN
		anyResult  = harnessv1.MessageClass_MESSAGE_CLASS_RESULT

		system, user, model, result = harnessv1.Role_ROLE_SYSTEM, harnessv1.Role_ROLE_USER, harnessv1.Role_ROLE_ASSISTANT, harnessv1.Role_ROLE_TOOL

		goal, guidance = harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE
	)
	r := &harnessv1.GetContextResponse{
		Version: version, Model: "openai:gpt-5", UsedTokens: 62_400, MaxInputTokens: 128_000, ToolTokens: 3_120,
		Items: []*item{
			{FirstMessage: 1, LastMessage: 1, Role: system, Tokens: 2310, OriginalTokens: 2310, Text: "You are an agent that works on software.\nUse the tools."},
			{FirstMessage: 2, LastMessage: 2, Role: user, Kind: goal, Tokens: 120, OriginalTokens: 120, Text: "Find out why the tests of the shop fail and fix the program. Do not change the tests."},
			{FirstMessage: 3, LastMessage: 120, Role: user, Kind: guidance, TurnNumber: 40, Action: summarize, Tokens: 1700, OriginalTokens: 60_200, Reason: "summary of m3-m120; pass at version 400", Ref: "m3-m120", Text: "[harness] Record of messages"},
			{FirstMessage: 121, LastMessage: 121, Role: model, TurnNumber: 41, Tokens: 64, OriginalTokens: 64, Calls: []string{"read_file", "read_file", "search_files"}, Text: "I'll read\x1b[2J both files."},
			{FirstMessage: 122, LastMessage: 122, Role: result, ToolName: "read_file", TurnNumber: 41, Action: clearing, Tokens: 38, OriginalTokens: 9800, Reason: "cleared: replayable results of 100 tokens or more up to m140; pass at version 412", Ref: "m122"},
			{FirstMessage: 123, LastMessage: 123, Role: result, ToolName: "read_file", TurnNumber: 41, Tokens: 9900, OriginalTokens: 9900, Text: "package shop\n\nimport"},
			{FirstMessage: 124, LastMessage: 124, Role: result, ToolName: "web_search", TurnNumber: 41, Action: externalize, Tokens: 130, OriginalTokens: 4100, Reason: "externalised: results that cannot be produced again of 500 tokens or more up to m140; pass at version 412", Ref: "m124"},
			{FirstMessage: 125, LastMessage: 125, Role: user, Kind: guidance, TurnNumber: 41, Tokens: 55, OriginalTokens: 55, Text: "Work items: 2 of 3 finished"},
			{FirstMessage: 126, LastMessage: 126, Role: model, TurnNumber: 42, Action: drop, Tokens: 20, OriginalTokens: 60, Reason: "without calls whose results are not shown; pass at version 412", Ref: "m126", Text: "Two calls."},
			{FirstMessage: 127, LastMessage: 127, Role: user, Kind: harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION, TurnNumber: 42, Tokens: 70, OriginalTokens: 70, Text: "Your last response had no tool call"},
			{FirstMessage: 128, LastMessage: 128, Role: result, ToolName: "mcp__warehouse__list_of_all_the_things", TurnNumber: 43, Action: shorten, Tokens: 2000, OriginalTokens: 9000, Reason: "shortened to 2000 tokens: all results up to m128; pass at version 412", Ref: "m128"},
			{Role: result, Kind: harnessv1.MessageKind_MESSAGE_KIND_REPAIR, ToolName: "run_command", Tokens: 12, OriginalTokens: 12, Text: "No result of this call was recorded."},
		},
		Plan: []*harnessv1.PlanRange{
			{FirstMessage: 3, LastMessage: 120, Action: summarize, Class: span, Messages: 117, Version: 400},
			{FirstMessage: 122, LastMessage: 140, Action: clearing, Class: replayable, Messages: 1, Version: 412},
			{FirstMessage: 124, LastMessage: 124, Action: externalize, Class: nonReplay, Messages: 1, Version: 412},
			{FirstMessage: 128, LastMessage: 128, Action: shorten, Class: anyResult, Messages: 1, Version: 412},
		},
	}
	r.TotalItems = uint32(len(r.Items))
	switch version {
	case 57, 60:
		r.ViewDigest, r.DigestMatches = []byte{1, 2, 3}, proto.Bool(version == 57)
	case 61:
		r.Items, r.Plan, r.TotalItems = nil, nil, 0
		r.UsedTokens, r.ToolTokens = 500, 0
	}
	return r
}

// GetContext answers in pages of 5 messages.
func (f *fake) GetContext(_ context.Context, q *harnessv1.GetContextRequest) (*harnessv1.GetContextResponse, error) {
	if _, err := f.find(q.GetRunId()); err != nil {
		return nil, err
	}
	if q.GetVersion() > 100 {
		return nil, fault.Invalid("version", "%d: run default/%s has versions up to 100", q.GetVersion(), q.GetRunId())
	}
	r := sightOf(q.GetVersion())
	from := 0
	if q.GetPageToken() != "" {
		_, _ = fmt.Sscan(q.GetPageToken(), &from)
		r.Plan = nil
	}
	to := min(from+5, len(r.GetItems()))
	if r.Items = r.GetItems()[from:to]; to < int(r.GetTotalItems()) {
		r.NextPageToken, r.DigestMatches = fmt.Sprint(to), nil
	}
	return r, nil
}

func TestShowContext(t *testing.T) {
	f := serveFake(t)
	f.add("a", "default", aSpec())
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"context-80.txt":  {map[string]string{"COLUMNS": "80"}, []string{"--version", "57"}},
		"context-120.txt": {map[string]string{"COLUMNS": "120", "LANG": "C"}, []string{"--version", "60"}},
		"context.txt":     {nil, nil},
		"context.json":    {nil, []string{"--version", "57", "--output", "json"}},
	} {
		got := call(t, c.env, "", append([]string{"show", "a", "--context", "--server", f.address}, c.args...)...)
		if got.code != 0 || got.err != "" {
			t.Errorf("%s: %+v", name, got)
		}
		golden(t, name, got.out)
		if strings.Contains(got.out, "\x1b") {
			t.Errorf("%s: has control characters", name)
		}
	}
	empty := call(t, nil, "", "show", "a", "--context", "--version", "61", "--server", f.address)
	if empty.code != 0 || !strings.Contains(empty.out, "no messages") {
		t.Errorf("%+v", empty)
	}
}

// TestShowContextFitsTheTerminal at any width: no line is longer.
func TestShowContextFitsTheTerminal(t *testing.T) {
	f := serveFake(t)
	f.add("a", "default", aSpec())
	for _, width := range []int{60, 72, 80, 99, 100, 120, 200} {
		got := call(t, map[string]string{"COLUMNS": fmt.Sprint(width)}, "", "show", "a", "--context", "--version", "57", "--server", f.address)
		longest := slices.MaxFunc(strings.Split(got.out, "\n"), func(a, b string) int { return utf8.RuneCountInString(a) - utf8.RuneCountInString(b) })
		if got.code != 0 || utf8.RuneCountInString(longest) > width {
			t.Errorf("%d columns: %s", width, longest)
		}
	}
}

func TestShowContextAsJSON(t *testing.T) {
	f := serveFake(t)
	f.add("a", "default", aSpec())
	got := call(t, nil, "", "show", "a", "--context", "--version", "57", "--output", "json", "--server", f.address)
	var object struct {
		Version int
		Model   string
		Used    int `json:"used_tokens"`
		Max     int `json:"max_input_tokens"`
		Items   []struct{ Action, Reason string }
		Plan    []struct {
			First int `json:"first_message"`
		}
		Matches bool   `json:"digest_matches"`
		Next    string `json:"next_page_token"`
	}
	if err := json.Unmarshal([]byte(got.out), &object); err != nil || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("%v: %s", err, got.out)
	}
	if object.Version != 57 || object.Model != "openai:gpt-5" || object.Used != 62_400 || object.Max != 128_000 || len(object.Items) != 12 || len(object.Plan) != 4 ||
		object.Items[4].Action != "CLEAR" || !object.Matches || object.Next != "" {
		t.Errorf("%+v", object)
	}
}

func TestShowContextRefusals(t *testing.T) {
	f := serveFake(t)
	f.add("a", "default", aSpec())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "--context", "--version", "101"}, "version: 101: run default/a has versions up to 100"},
		{[]string{"none", "--context"}, "none"},
		{[]string{"a", "--version", "3"}, "--version: needs --context; for the state at a version use --state VERSION"},
		{[]string{"a", "--context", "--version", "x"}, "--version: expected a valid 64 bit uint"},
		{[]string{"a", "--context", "--version", "-1"}, "--version"},
		{[]string{"a", "--context", "--version", "0"}, "--version: 0: versions begin with 1; leave it out for the newest"},
		{[]string{"a", "--context", "--conversation"}, "--context and --conversation are mutually exclusive"},
		{[]string{"a", "--context", "--state"}, "--context and --state are mutually exclusive"},
		{[]string{"--context"}, "expected \"<run>\""},
	} {
		got := call(t, nil, "", append(append([]string{"show"}, c.args...), "--server", f.address)...)
		if got.code != 1 || !strings.Contains(got.err, c.want) || strings.Count(got.err, "\n") != 1 || got.out != "" {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}
