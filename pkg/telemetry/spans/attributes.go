package spans

import (
	"math"
	"path"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

// Attributes of the semantic conventions for generative AI. They are in development and
// no longer in the Go package of the conventions.
const (
	OperationName    = attribute.Key("gen_ai.operation.name")
	ProviderName     = attribute.Key("gen_ai.provider.name")
	ConversationID   = attribute.Key("gen_ai.conversation.id")
	AgentName        = attribute.Key("gen_ai.agent.name")
	RequestModel     = attribute.Key("gen_ai.request.model")
	RequestStream    = attribute.Key("gen_ai.request.stream")
	ResponseModel    = attribute.Key("gen_ai.response.model")
	FinishReasons    = attribute.Key("gen_ai.response.finish_reasons")
	InputTokens      = attribute.Key("gen_ai.usage.input_tokens")
	OutputTokens     = attribute.Key("gen_ai.usage.output_tokens")
	CacheReadTokens  = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	CacheWriteTokens = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	ReasoningTokens  = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	ToolName         = attribute.Key("gen_ai.tool.name")
	ToolCallID       = attribute.Key("gen_ai.tool.call.id")
	ToolType         = attribute.Key("gen_ai.tool.type")
	ToolArguments    = attribute.Key("gen_ai.tool.call.arguments") // content
	ToolResult       = attribute.Key("gen_ai.tool.call.result")    // content
	InputMessages    = attribute.Key("gen_ai.input.messages")      // content
	OutputMessages   = attribute.Key("gen_ai.output.messages")     // content
	ErrorType        = attribute.Key("error.type")
)

// Attributes of this project.
const (
	RunID             = attribute.Key("harness.run.id")
	Namespace         = attribute.Key("harness.namespace")
	TurnNumber        = attribute.Key("harness.turn")        // number, from 1
	Chapter           = attribute.Key("harness.chapter")     // number of the trace, from 0
	Version           = attribute.Key("harness.version")     // of the step that was received
	Executor          = attribute.Key("harness.executor")    // its name
	StepTo            = attribute.Key("harness.to")          // addressee of the next step
	Outcome           = attribute.Key("harness.outcome")     // committed, lost, put_back or failed
	Redelivered       = attribute.Key("harness.redelivered") // the step was delivered before
	WaitedMS          = attribute.Key("harness.waited_ms")   // for something outside, without a slot of the worker
	Attempt           = attribute.Key("harness.attempt")     // of a turn, from 1
	Status            = attribute.Key("harness.status")      // of the run, as done
	Reason            = attribute.Key("harness.reason")      // kind of the stop reason
	Cause             = attribute.Key("harness.cause")       // what a link leads to
	Try               = attribute.Key("harness.try")         // of the model, from 1
	MessageCount      = attribute.Key("harness.messages")    // of the request
	CostMicroUSD      = attribute.Key("harness.cost_micro_usd")
	ToolOutcome       = attribute.Key("harness.tool.outcome")
	TokensBefore      = attribute.Key("harness.compaction.tokens_before")
	TokensAfter       = attribute.Key("harness.compaction.tokens_after")
	TokensFreed       = attribute.Key("harness.compaction.tokens_freed")
	JobPurpose        = attribute.Key("harness.job.purpose")
	JobKey            = attribute.Key("harness.job.key")
	JobTries          = attribute.Key("harness.job.tries")             // in all
	Strategies        = attribute.Key("harness.compaction.strategies") // that freed something, in order
	PassLevel         = attribute.Key("harness.compaction.level")      // soft or blocking
	PassNumber        = attribute.Key("harness.compaction.pass")       // in the run, from 1
	SummaryError      = attribute.Key("harness.compaction.error")      // why a summary could not be used
	HookID            = attribute.Key("harness.hook.id")
	HookTopic         = attribute.Key("harness.hook.topic")
	CheckOutput       = attribute.Key("harness.check.output")
	CheckStatus       = attribute.Key("harness.check.status")            // of the requirement, as met
	QualityKind       = attribute.Key("harness.quality.kind")            // of the work
	QualityLevel      = attribute.Key("harness.quality.level")           // simple, medium or complex
	QualityAttempts   = attribute.Key("harness.quality.attempts")        // that were made
	QualityDelivered  = attribute.Key("harness.quality.delivered")       // number of the attempt that is delivered
	QualityIterations = attribute.Key("harness.quality.iterations")      // that were made
	QualityCombined   = attribute.Key("harness.quality.combined")        // score of that attempt, 0 to 1
	QualityVerifier   = attribute.Key("harness.quality.verifier_score")  // 0 to 1; not set if none answered
	QualityContract   = attribute.Key("harness.quality.contract_passed") // by that attempt
	QualityDegraded   = attribute.Key("harness.quality.degraded")        // no attempt was good enough
	QualityScores     = attribute.Key("harness.quality.scores")          // NAME=SCORE, 0 to 100
	QualityDuration   = attribute.Key("harness.quality.duration_ms")     // of the segment
	AnswerWords       = attribute.Key("harness.quality.answer.words")
	AnswerDistinct    = attribute.Key("harness.quality.answer.distinct") // share of the pairs of words, 0 to 1
	AnswerBits        = attribute.Key("harness.quality.answer.bits")     // a pair of words
	AnswerRepetitive  = attribute.Key("harness.quality.answer.repetitive")
	IssueBits         = attribute.Key("harness.quality.issue_bits") // of the profile's last 20 segments
	AlreadyExists     = attribute.Key("harness.existed")            // the run was there already
)

// Operations.
const (
	invokeAgent = "invoke_agent"
	Chat        = "chat"
	ExecuteTool = "execute_tool"
	Compact     = "compact"
	Judge       = "judge"
)

// RunAttributes returns the attributes that identify the spans of a run.
func RunAttributes(run runlog.Run) []attribute.KeyValue {
	return []attribute.KeyValue{RunID.String(run.ID), Namespace.String(run.Namespace), ConversationID.String(run.ID)}
}

// Usage returns the attributes of a usage: the tokens sent and received, and all other
// figures that are not 0.
func Usage(u *harnessv1.Usage) []attribute.KeyValue {
	out := []attribute.KeyValue{
		InputTokens.Int64(figure(u.GetInputTokens())), OutputTokens.Int64(figure(u.GetOutputTokens())),
	}
	for _, part := range []struct {
		key attribute.Key
		n   uint64
	}{
		{CacheReadTokens, u.GetCachedInputTokens()}, {CacheWriteTokens, u.GetCacheWriteTokens()},
		{ReasoningTokens, u.GetReasoningTokens()}, {CostMicroUSD, u.GetCostMicroUsd()},
	} {
		if part.n > 0 {
			out = append(out, part.key.Int64(figure(part.n)))
		}
	}
	return out
}

// figure returns a figure of a usage as attributes have it; it saturates.
func figure(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// grouping returns the attributes of a span that crosses processes.
func grouping(s runtrace.Span, step *harnessv1.Step) []attribute.KeyValue {
	snapshot := step.GetSnapshot()
	out := []attribute.KeyValue{Chapter.Int(int(s.Chapter)), Status.String(statusName(snapshot.GetStatus()))}
	if reason := snapshot.GetStopReason().GetKind(); reason != "" && runlog.IsRest(step.GetTo()) {
		out = append(out, Reason.String(reason))
	}
	if s.Kind == runtrace.Turn {
		return append(out, TurnNumber.Int(int(snapshot.GetTurn().GetNumber())))
	}
	out = append(out, OperationName.String(invokeAgent), ProviderName.String(Provider(snapshot.GetModel())), RequestModel.String(ModelName(snapshot.GetModel())))
	if name := snapshot.GetTrace().GetAgentName(); name != "" {
		out = append(out, AgentName.String(name))
	}
	return out
}

// failed returns the kind of the error with which a step ends its run, empty for none.
func failed(step *harnessv1.Step) string {
	if s := step.GetSnapshot(); step.GetTo() == runlog.End && s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_FAILED {
		return s.GetStopReason().GetKind()
	}
	return ""
}

// statusName returns a status for display, such as done.
func statusName(s harnessv1.RunStatus) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "RUN_STATUS_"))
}

// Provider returns the provider in PROVIDER:NAME.
func Provider(ref string) string {
	provider, _, _ := strings.Cut(ref, ":")
	return provider
}

// ModelName returns the name in PROVIDER:NAME, without the folders of a file.
func ModelName(ref string) string {
	name := ref
	if _, after, ok := strings.Cut(ref, ":"); ok {
		name = after
	}
	if Provider(ref) == "script" {
		return path.Base(name)
	}
	return name
}
