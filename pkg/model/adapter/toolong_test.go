package adapter_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// openAIError returns an error body in the form of OpenAI.
func openAIError(message, kind, code string) string {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// anthropicError returns an error body in the form of Anthropic.
func anthropicError(kind, message string) string {
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func classify(status int, body string) *model.Error {
	return new(adapter.Refusals).Classify(&wire.StatusError{Status: status, Header: http.Header{}, Body: []byte(body)})
}

// The bodies are those of real services, read where the comments say.
func TestRequestsThatAreTooLong(t *testing.T) {
	for _, c := range []struct {
		name           string
		status         int
		body           string
		prompt, window uint32
	}{
		// crewAIInc/crewAI-examples#121
		{"OpenAI", 400, openAIError("This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce the length of the messages.",
			"invalid_request_error", "context_length_exceeded"), 8227, 8192},
		// bytedance/deer-flow#310
		{"OpenAI with functions", 400, openAIError("This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens (202767 in the messages, 101 in the functions). Please reduce the length of the messages or functions.",
			"invalid_request_error", "context_length_exceeded"), 202868, 128000},
		// mckaywrigley/chatbot-ui#102
		{"OpenAI with an answer", 400, openAIError("This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
			"invalid_request_error", "context_length_exceeded"), 3120, 3097},
		// hwchase17/chat-your-data#10
		{"OpenAI, older", 400, openAIError("This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
			"invalid_request_error", ""), 3975, 3841},
		// cline/cline#5474
		{"OpenAI, gpt-5", 400, openAIError("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages.",
			"invalid_request_error", "context_length_exceeded"), 289650, 272000},
		// the-open-agent/openagent#2344
		{"OpenAI Responses", 400, openAIError("Your input exceeds the context window of this model. Please adjust your input and try again.",
			"invalid_request_error", "context_length_exceeded"), 0, 0},
		// obot-platform/obot#1009
		{"OpenAI, too many messages", 400, openAIError("Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2050 instead.",
			"invalid_request_error", "array_above_max_length"), 0, 0},
		// vanna-ai/vanna-flask#11
		{"OpenAI, more than a minute's tokens", 429, openAIError("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.",
			"tokens", "rate_limit_exceeded"), 342389, 30000},
		// anthropics/claude-code#12186
		{"Anthropic", 400, anthropicError("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), 208310, 200000},
		// docker/docker-agent#569
		{"Anthropic with an answer", 400, anthropicError("invalid_request_error", "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"), 178959, 136000},
		// anthropics/anthropic-sdk-python#938
		{"Anthropic, bytes", 413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, 0, 0},
		// anthropics/claude-code#6380
		{"Anthropic, size", 413, anthropicError("invalid_request_error", "Request size exceeds model context window"), 0, 0},
		// continuedev/continue#11371: a proxy answers 500 with the body as a JSON string
		{"Anthropic through a proxy", 500, `"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 203052 tokens > 200000 maximum\"}}"`, 203052, 200000},
		// aws-samples/assessment-generator#2, continuedev/continue#6005
		{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, 0, 0},
		{"Bedrock Converse", 400, `{"message":"The model returned the following errors: Input is too long for requested model."}`, 0, 0},
		// egoist/chatwise-releases#917
		{"Bedrock through OpenRouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"input length and ` + "`max_tokens`" + ` exceed context limit: 149674 + 64000 > 204658, decrease input length or ` + "`max_tokens`" + ` and try again\"}","provider_name":"Amazon Bedrock"}}}`, 149674, 140658},
		// topoteretes/cognee#1061
		{"OpenRouter", 400, `{"error":{"message":"This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}`, 94307, 16384},
		// boldsoftware/shelley#159
		{"OpenRouter with tools and an answer", 400, openAIError("This endpoint's maximum context length is 204800 tokens. However, you requested about 205432 tokens (81684 of text input, 3748 of tool input, 120000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", "", ""), 85432, 84800},
		// OpenHands/OpenHands#9937: no request fits an answer of the whole window
		{"OpenRouter, nothing left", 400, openAIError("This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output).", "", ""), 7884, 0},
		// vllm-project/vllm#20409, ogx-ai/ogx#4534
		{"vLLM to 0.9", 400, `{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, 112946, 6384},
		// THUDM/LongBench#104
		{"vLLM without an answer", 400, `{"object":"error","message":"This model's maximum context length is 131072 tokens. However, you requested 351430 tokens. Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, 351430, 131072},
		// vLLM's serving_engine.py, 0.10 to 0.14
		{"vLLM from 0.10", 400, openAIError("This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens. Please reduce the length of the input messages.", "BadRequestError", ""), 40000, 32768},
		// stepfun-ai/Step-Audio-R1#3
		{"vLLM from 0.10 with an answer", 400, openAIError("'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 tokens and your request has 9000 input tokens (32000 > 40960 - 9000).", "BadRequestError", ""), 9000, 8960},
		// vLLM's renderers/params.py, vllm-project/vllm#36197; it stops counting at the limit
		{"vLLM from 0.16", 400, openAIError("This model's maximum context length is 262144 tokens. However, you requested 65539 output tokens and your prompt contains at least 196606 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=196606)", "BadRequestError", ""), 0, 196605},
		{"vLLM from 0.16, counted", 400, openAIError("This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains 262200 input tokens, for a total of 262200 tokens. Please reduce the length of the input prompt or the number of requested output tokens.", "BadRequestError", ""), 262200, 262144},
		// vLLM's v1/engine/input_processor.py; vllm-project/vllm#12165
		{"vLLM's engine", 400, openAIError("The decoder prompt (length 25938) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.", "BadRequestError", ""), 25938, 4096},
		{"vLLM's engine, older", 400, openAIError("The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.", "BadRequestError", ""), 25938, 4096},
		// SGLang's tokenizer_manager.py; sgl-project/sglang#4048
		{"SGLang", 400, openAIError("Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 123616 tokens from the input messages and 16384 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.", "BadRequestError", ""), 123616, 114688},
		{"SGLang's scheduler", 400, openAIError("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.", "BadRequestError", ""), 160062, 59862},
		// earendil-works/pi, packages/ai/test/overflow.test.ts
		{"Together", 400, openAIError("The input (516368 tokens) is longer than the model's context length (262144 tokens).", "invalid_request_error", ""), 516368, 262144},
		{"Poolside", 400, openAIError("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", "", ""), 131393, 131040},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, 140000, 131072},
		{"Ollama", 400, openAIError("prompt too long; exceeded max context length by 100918 tokens", "invalid_request_error", ""), 0, 0},
		{"Moonshot", 400, openAIError("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", "invalid_request_error", ""), 291351, 262144},
		// evalstate/fast-agent#621
		{"DeepSeek", 400, openAIError("This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
			"invalid_request_error", "invalid_request_error"), 122942, 122880},
		// google-gemini/gemini-cli#4231; the compatible address wraps it in an array
		{"Gemini", 400, `[{"error":{"code":400,"message":"The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, 3475108, 1048576},
		{"Gemini without the count", 400, `[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}]`, 0, 1048576},
		// cline/cline#3120
		{"xAI", 400, `{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 136973 tokens."}`, 136973, 131072},
		// OpenHands/OpenHands#1902
		{"Groq", 400, openAIError("Please reduce the length of the messages or completion.", "invalid_request_error", "context_length_exceeded"), 0, 0},
		// continuedev/continue#10218, assafelovic/gpt-researcher#985
		{"Groq, more than a minute's tokens", 413, openAIError("Request too large for model `llama-3.3-70b-versatile` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.",
			"tokens", "rate_limit_exceeded"), 14137, 12000},
		// cline/cline#5140
		{"Cerebras", 400, `{"message":"Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`, 42328, 40000},
		{"Cerebras without a body", 413, ``, 0, 0},
		// microsoft/vscode#289219
		{"GitHub Copilot", 400, `{"error":{"message":"prompt token count of 1236658 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, 1236658, 128000},
		// oobabooga/textgen#7257, ggml-org/llama.cpp#15780
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`, 14429, 8192},
		{"llama.cpp, 500", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`, 1407, 256},
		// langchain-ai/openwiki#648
		{"llama.cpp, newer", 400, `{"error":{"code":400,"message":"request (131168 tokens) exceeds the available context size (131072 tokens), try increasing it","type":"exceed_context_size_error"}}`, 131168, 131072},
		// fedora-copr/logdetective-website#193
		{"llama-cpp-python", 400, `{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error","param":null,"code":null}}`, 2285, 2048},
		// lmstudio-ai/lmstudio-bug-tracker#546
		{"LM Studio", 400, `{"error":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input."}`, 111490, 32768},
		// anomalyco/opencode#2259, anomalyco/opencode#11141
		{"LM Studio, newer", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 15028>= n_ctx: 7424). Try to load the model with a larger context length, or provide a shorter input."}`, 15028, 7424},
		{"LM Studio, truncation", 400, `{"error":"Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}`, 15028, 7424},
		// lmstudio-ai/lmstudio-bug-tracker#2339, #1251
		{"LM Studio with MLX", 400, `{"error":"Context size has been exceeded."}`, 0, 0},
		{"LM Studio in mid-answer", 400, `{"error":"Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation context overflow."}`, 0, 4096},
		// QwenLM/qwen-code#98
		{"Alibaba", 400, openAIError("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", "invalid_request_error", "invalid_parameter_error"), 0, 204800},
		// MiniMax-AI/MiniMax-M2#119: 2013 is a code
		{"MiniMax", 400, anthropicError("bad_request_error", "invalid params, context window exceeds limit (2013)"), 0, 0},
		// ValueCell-ai/ClawX#658
		{"oMLX", 400, openAIError("Prompt too long: 41911 tokens exceeds max context window of 32768 tokens", "", ""), 41911, 32768},
		// can1357/oh-my-pi#1618
		{"a gateway", 400, openAIError("The prompt is too long: 267657, model maximum context length: 262143", "invalid_request_error", ""), 267657, 262143},
		// huggingface/llm-vscode#94
		{"Hugging Face", 422, `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens and 60 `max_new_tokens`" + `","error_type":"validation"}`, 3474, 1988},
		// ddalcu/mlx-serve#66
		{"mlx-serve", 400, anthropicError("invalid_request_error", "Prompt exceeds maximum context length"), 0, 0},
		{"nginx", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>", 0, 0},
		{"thousands", 400, openAIError("This model's maximum context length is 131,072 tokens. However, your messages resulted in 140,001 tokens.", "", ""), 140001, 131072},
		{"more than fits", 400, anthropicError("invalid_request_error", "prompt is too long: 99999999999 tokens > 200000 maximum"), 4294967295, 200000},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := classify(c.status, c.body)
			if !e.ContextExceeded || e.Retryable || e.PromptTokens != c.prompt || e.WindowTokens != c.window {
				t.Errorf("got exceeded %v, retryable %v, %d of %d tokens, want %d of %d: %s",
					e.ContextExceeded, e.Retryable, e.PromptTokens, e.WindowTokens, c.prompt, c.window, e.Message)
			}
			if in := new(adapter.Refusals).Reported([]byte(c.body)); c.status == 400 && (!in.ContextExceeded || in.PromptTokens != c.prompt || in.WindowTokens != c.window) {
				t.Errorf("within a stream: got exceeded %v, %d of %d tokens", in.ContextExceeded, in.PromptTokens, in.WindowTokens)
			}
		})
	}
}

func TestRefusalsForOtherReasons(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		// OpenHands/OpenHands#11090
		{"the answer alone is too long", 400, anthropicError("invalid_request_error", "max_tokens: 1000000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514")},
		// charmbracelet/crush#946
		{"Bedrock, the answer", 400, `{"message":"The maximum tokens you requested exceeds the model limit of 32768"}`},
		// elizaOS/eliza#4040
		{"tokens of this minute", 429, openAIError("Rate limit reached for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.", "tokens", "rate_limit_exceeded")},
		{"Bedrock, throttled", 429, `{"message":"Too many tokens, please wait before trying again."}`},
		{"a limit with the same words", 400, openAIError("Rate limit: your requests of this minute exceed the context window budget", "", "")},
		// 0x4m4/hexstrike-ai#29, github/copilot-cli#669
		{"too many tools", 400, openAIError("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.", "invalid_request_error", "array_above_max_length")},
		{"too many calls", 400, openAIError("Invalid 'messages[21].tool_calls': array too long. Expected an array with maximum length 128, but got an array with length 131 instead.", "", "invalid_request_body")},
		{"a key", 401, openAIError("Incorrect API key provided: maximum context length", "invalid_request_error", "invalid_api_key")},
		{"overloaded", 529, anthropicError("overloaded_error", "Overloaded")},
		{"not found", 404, openAIError("The model x with maximum context length 5 does not exist", "", "model_not_found")},
		{"no message", 400, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := classify(c.status, c.body); e.ContextExceeded || e.PromptTokens != 0 || e.WindowTokens != 0 {
				t.Errorf("got exceeded %v, %d of %d tokens", e.ContextExceeded, e.PromptTokens, e.WindowTokens)
			}
		})
	}
}

// A body of the largest size is read in bounded time.
func FuzzTooLong(f *testing.F) {
	f.Add(400, openAIError("This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens.", "", ""))
	f.Add(413, "")
	f.Add(500, `"exceeds the context window"`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := classify(status, body)
		if (e.PromptTokens != 0 || e.WindowTokens != 0) && !e.ContextExceeded {
			t.Error("a refusal for another reason has sizes")
		}
		if e.ContextExceeded && e.Retryable {
			t.Error("a request that is too long is retryable")
		}
	})
}
