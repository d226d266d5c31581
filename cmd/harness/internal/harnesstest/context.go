package harnesstest

import (
	"google.golang.org/protobuf/proto"

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
