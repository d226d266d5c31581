package adapter

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// requestSize is what a refusal names of a request that is too long. Each number is 0 if it
// is not named.
type requestSize struct {
	// prompt is the number of tokens that the service has counted in the request.
	prompt uint32
	// window is the number of tokens that the model takes in a request: its whole window,
	// less the tokens that the service reserves in it for the answer.
	window uint32
}

// maxTooLongText bounds how much of a message is read, in bytes.
const maxTooLongText = 16 << 10

// tooLong reports whether a service has refused a request because it is too long, and returns the sizes that
// the refusal names. Services have no common code for it, gateways pass on the texts of
// others, and a compatible server may speak another service's wire: so all texts count for
// all wires.
func tooLong(status int, fault wire.Fault, body []byte) (requestSize, bool) {
	byCode := slices.Contains(tooLongCodes, fault.Code) || slices.Contains(tooLongCodes, fault.Type) ||
		status == http.StatusRequestEntityTooLarge
	text := fault.Message
	if text == "" {
		text = string(body)
	}
	text = text[:min(len(text), maxTooLongText)]
	size, byText := sizeInText(text)
	switch {
	case byText && size.overLimit():
		return size, true // a limit of tokens in a minute, with 413 or 429: no wait makes the request fit
	case byCode:
	case !byText || !blamesRequest(status) || throttled.MatchString(text):
		return requestSize{}, false
	}
	if size == (requestSize{}) {
		size = sizeInBody(body)
	}
	return size, true
}

// overLimit reports whether the request is longer than the model takes.
func (s requestSize) overLimit() bool { return s.window > 0 && s.prompt > s.window }

// blamesRequest reports whether a status may be that of a request that is too long. Some
// servers and gateways answer 500 to it.
func blamesRequest(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusBadGateway:
		return true
	}
	return false
}

// tooLongCodes are the codes and types of requests that are too long: OpenAI's, llama.cpp's,
// GitHub's, Z.ai's and Anthropic's.
var tooLongCodes = []string{
	"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "model_context_window_exceeded",
	"request_too_large",
}

// throttled matches refusals that use the same words of a limit that time restores.
var throttled = regexp.MustCompile(`(?i)rate.?limit|too many requests|throttl`)

// The numbers in the texts below. PROMPT is a part of WINDOW only together with ANSWER,
// and TOTAL is PROMPT and ANSWER.
var numbers = strings.NewReplacer(
	"PROMPT", `(?P<prompt>[0-9][0-9,]*)`, "WINDOW", `(?P<window>[0-9][0-9,]*)`,
	"ANSWER", `(?P<answer>[0-9][0-9,]*)`, "TOTAL", `(?P<total>[0-9][0-9,]*)`, "NUMBER", `[0-9][0-9,]*`,
)

// tooLongTexts match the messages with which services refuse requests that are too long; the
// test names where each was read. The first that matches counts, so those with more numbers
// precede those with fewer. They are compiled at the first use, which most processes never
// have.
var tooLongTexts = compileTexts(
	// Anthropic.
	`prompt is too long: PROMPT tokens > WINDOW maximum`,
	`exceed context limit: PROMPT \+ ANSWER > WINDOW`,
	// vLLM; its lower bounds are no numbers of the prompt.
	`maximum context length is WINDOW tokens.{0,40}?requested ANSWER output tokens and your prompt contains (?:at least NUMBER|PROMPT) input tokens`,
	`max_completion_tokens'? is too large: ANSWER\b.*?maximum context length is WINDOW tokens and your request has PROMPT input tokens`,
	`maximum context length is WINDOW tokens.{0,40}?your request has PROMPT input tokens`,
	`\(length PROMPT\) is longer than the maximum model length of WINDOW`,
	`\(total length PROMPT\) is too long to fit into the model \(context length WINDOW\)`,
	// OpenAI, DeepSeek, OpenRouter, vLLM.
	`maximum context length is WINDOW tokens.{0,40}?resulted in PROMPT tokens`,
	`maximum context length is WINDOW tokens.{0,40}?requested (?:about )?TOTAL tokens \([^)]*?ANSWER (?:in|for) the (?:completion|output)`,
	`maximum context length is WINDOW tokens.{0,40}?requested (?:about )?PROMPT tokens`,
	`exceed the configured limit of WINDOW tokens.{0,40}?resulted in PROMPT tokens`,
	// SGLang, Together, Poolside.
	`maximum context length of WINDOW tokens.{0,80}?PROMPT tokens from the input messages and ANSWER tokens for the completion`,
	`input \(PROMPT tokens\) is longer than the model'?s context length \(WINDOW tokens\)`,
	`input length \(?PROMPT(?: tokens\))? exceeds the maximum allowed (?:input )?length (?:of )?\(?WINDOW`,
	// Gemini.
	`input token count (?:of )?\(?PROMPT\)? exceeds the maximum number of tokens allowed \(?WINDOW`,
	// xAI, Mistral, Moonshot, Cerebras, GitHub Copilot.
	`maximum prompt length is WINDOW but the request contains PROMPT tokens`,
	`prompt contains PROMPT tokens.{0,80}?too large for model with WINDOW maximum context length`,
	`exceeded model token limit: WINDOW \(requested: PROMPT\)`,
	`current length is PROMPT while limit is WINDOW`,
	`prompt token count of PROMPT exceeds the limit of WINDOW`,
	// llama.cpp and its bindings, MLX servers, LM Studio.
	`request \(PROMPT tokens\) exceeds the available context size \(WINDOW tokens\)`,
	`requested tokens \(PROMPT\) exceed context window of WINDOW`,
	`prompt (?:is )?too long: PROMPT tokens exceeds max context window of WINDOW`,
	`prompt is too long: PROMPT, model maximum context length: WINDOW`,
	`keep the first PROMPT tokens.*?context length of only WINDOW tokens`,
	`n_keep:? ?\(?PROMPT\)? ?>= n_ctx:? ?\(?WINDOW`,
	// Groq and OpenAI: more tokens than the plan takes in a minute.
	`request too large.*?limit WINDOW, requested PROMPT`,
	// Hugging Face.
	`must be <= WINDOW\. given: PROMPT .inputs. tokens and ANSWER .max_new_tokens.`,
	// Alibaba.
	`range of input length should be \[NUMBER, WINDOW\]`,
	// Only the window, or nothing.
	`maximum context length (?:is|of) WINDOW tokens`,
	`maximum prompt length is WINDOW`,
	`reached context length of WINDOW tokens`,
	`exceeds the maximum number of tokens allowed(?: WINDOW)?`,
	`(?:prompt|input) is too long`, // Anthropic, Bedrock
	`prompt too long; exceeded`,    // Ollama
	`reduce the length of the messages`,
	`greater than the context length`, // LM Studio
	`exceed(?:s|ed)?(?: [\w']+){0,3} context (?:window|length|size|limit)`,
	`context[ _](?:window|length|size|limit)(?: has been| was)?[ _]exceed`,
	`maximum context length`,
	`invalid '(?:messages|input)': array too long`, // OpenAI: 2,048 messages
)

func compileTexts(texts ...string) func() []*regexp.Regexp {
	return sync.OnceValue(func() []*regexp.Regexp {
		compiled := make([]*regexp.Regexp, len(texts))
		for i, text := range texts {
			compiled[i] = regexp.MustCompile(`(?is)` + numbers.Replace(text))
		}
		return compiled
	})
}

// sizeInText returns the numbers of a message that refuses a request as too long; ok is
// false for another message.
func sizeInText(message string) (size requestSize, ok bool) {
	for _, text := range tooLongTexts() {
		found := text.FindStringSubmatch(message)
		if found == nil {
			continue
		}
		n := map[string]uint64{}
		for i, name := range text.SubexpNames() {
			if name != "" {
				n[name] = number(found[i])
			}
		}
		if total := n["total"]; total > n["answer"] {
			n["prompt"] = total - n["answer"]
		}
		if n["answer"] >= n["window"] {
			n["window"] = 0 // the answer alone is too long, so the model takes no request
		}
		return requestSize{prompt: clamp(n["prompt"]), window: clamp(n["window"] - min(n["answer"], n["window"]))}, true
	}
	return requestSize{}, false
}

// sizeInBody returns the members with which llama.cpp names the sizes.
func sizeInBody(body []byte) requestSize {
	var top struct {
		Error struct {
			Prompt wire.Int `json:"n_prompt_tokens"`
			Window wire.Int `json:"n_ctx"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &top) != nil {
		return requestSize{}
	}
	return requestSize{prompt: clamp(uint64(max(top.Error.Prompt, 0))), window: clamp(uint64(max(top.Error.Window, 0)))}
}

// number returns a number that may have commas; 0 for one that is too large.
func number(text string) uint64 {
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

func clamp(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
