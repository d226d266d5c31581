package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Temper is how a server of the chat protocol treats reasoning. The zero Temper sends
// reasoning_content and refuses each member that not every compatible server knows,
// reasoning too.
type Temper struct {
	// Member is the member of a message with reasoning: reasoning_content, which is the
	// default, reasoning, reasoning_details, or content, for chunks of the content.
	Member string
	// Return is which reasoning has to come back.
	Return Return
	// NotEmpty refuses reasoning that is empty.
	NotEmpty bool
	// Signatures sends a signature with the first call of each answer and demands it back.
	Signatures bool
	// NoSchema refuses the JSON Schema of an answer.
	NoSchema bool
	// Members are members of a request that the server takes in addition.
	Members []string
	// NoStreamOptions refuses stream_options and reports the usage of each stream.
	NoStreamOptions bool
	// NoUserAfterResults refuses other messages than answers directly after results.
	NoUserAfterResults bool
	// ShortCallIDs refuses ids of calls that are not nine letters and digits.
	ShortCallIDs bool
	// Words are those of the refusals.
	Words Words
}

// Return is which reasoning has to come back.
type Return string

// Which reasoning has to come back. It must be that which the server has sent with the
// answer, byte for byte, or blank.
const (
	// ReturnRefused refuses all of it.
	ReturnRefused Return = ""
	// ReturnAccepted demands none.
	ReturnAccepted Return = "accepted"
	// ReturnWithCalls demands that of answers with tool calls.
	ReturnWithCalls Return = "with calls"
	// ReturnAlways demands that of each answer.
	ReturnAlways Return = "always"
)

// Words are the words of a service.
type Words string

// The words.
const (
	WordsOpenAI   Words = ""
	WordsDeepSeek Words = "deepseek"
	WordsMoonshot Words = "moonshot"
	WordsMistral  Words = "mistral"
	WordsGroq     Words = "groq"
)

// TemperDeepSeek demands reasoning with each answer, empty or not.
func TemperDeepSeek() Temper {
	return Temper{Return: ReturnAlways, Words: WordsDeepSeek, Members: []string{"thinking", "reasoning_effort"}}
}

// TemperMoonshot demands reasoning with each answer that has calls, and not empty.
func TemperMoonshot() Temper {
	return Temper{Return: ReturnWithCalls, NotEmpty: true, Words: WordsMoonshot, Members: []string{"thinking", "reasoning_effort"}}
}

// TemperMistral takes reasoning in chunks of the content. It refuses members that it does
// not know, messages of the user directly after results, and long ids of calls.
func TemperMistral() Temper {
	return Temper{
		Member: memberChunks, Return: ReturnAccepted, NoStreamOptions: true, NoUserAfterResults: true, ShortCallIDs: true,
		Words: WordsMistral, Members: []string{"reasoning_effort"},
	}
}

// TemperGroq refuses reasoning.
func TemperGroq() Temper {
	return Temper{Member: "reasoning", Words: WordsGroq, Members: []string{"reasoning_effort", "reasoning_format"}}
}

// TemperOpenRouter takes a list of reasoning, and refuses an empty one.
func TemperOpenRouter() Temper {
	return Temper{Member: memberDetails, Return: ReturnAccepted, NotEmpty: true, Members: []string{"reasoning", "prompt_cache_key"}}
}

// TemperGemini demands the signature of the first call of each answer.
func TemperGemini() Temper {
	return Temper{Signatures: true, Members: []string{"reasoning_effort", "extra_body"}}
}

// TemperVLLM takes reasoning and demands none.
func TemperVLLM() Temper {
	return Temper{Member: "reasoning", Return: ReturnAccepted, Members: []string{"reasoning_effort", "chat_template_kwargs"}}
}

// The members with reasoning that are no text, and that with signatures.
const (
	memberDetails = "reasoning_details"
	memberChunks  = "content"
	memberExtra   = "extra_content"
)

// member returns the member of a message with reasoning.
func (t *Temper) member() string {
	if t.Member == "" {
		return "reasoning_content"
	}
	return t.Member
}

// named returns what refusals call the reasoning.
func (t *Temper) named() string {
	if t.member() == memberChunks {
		return "thinking"
	}
	return t.member()
}

// messageMembers are the members of an assistant's message that the server takes in
// addition; callMembers those of a call.
func (t *Temper) messageMembers() []string {
	var members []string
	if t.Return != ReturnRefused && t.member() != memberChunks {
		members = append(members, t.member())
	}
	return append(members, t.callMembers()...)
}

func (t *Temper) callMembers() []string {
	if t.Signatures {
		return []string{memberExtra}
	}
	return nil
}

// refusal is an error of the server.
type refusal struct {
	status        int
	code, message string
	body          []byte // instead of code and message
}

// Error returns the message.
func (r *refusal) Error() string { return r.message }

func (t *Temper) refuse(code, format string, args ...any) error {
	return &refusal{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// only refuses members that are not in known. role is that of the message, if o is one.
func (t *Temper) only(o object, at, role string, known ...string) error {
	for name := range o {
		if !slices.Contains(known, name) {
			return t.unknown(at, role, name, o[name])
		}
	}
	return nil
}

// unknown is the refusal of a member.
func (t *Temper) unknown(at, role, name string, value json.RawMessage) error {
	place := strings.FieldsFunc(at, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	switch {
	case t.Words == WordsMistral:
		loc := []any{"body"}
		for _, p := range place {
			if n, err := strconv.Atoi(p); err == nil {
				loc = append(loc, n)
			} else {
				loc = append(loc, p)
			}
		}
		if role != "" {
			loc = append(loc, role)
		}
		detail := map[string]any{"type": "extra_forbidden", "loc": append(loc, name), "msg": "Extra inputs are not permitted", "input": value}
		return &refusal{status: http.StatusUnprocessableEntity, message: "extra_forbidden " + at + name, body: mustJSON(map[string]any{
			"object": "error", "message": map[string]any{"detail": []any{detail}}, "type": "invalid_request_error", "param": nil, "code": nil,
		})}
	case t.Words == WordsGroq && role != "":
		where := strings.Join(place, ".")
		return t.refuse("", "'%s' : for 'role:%s' the following must be satisfied[('%s' : property '%s' is unsupported)]", where, role, where, name)
	case t.Words == WordsGroq:
		return t.refuse("", "property '%s' is unsupported", name)
	}
	return t.refuse("invalid_request", "unknown parameter: '%s%s'", at, name)
}

// missing is the refusal of an answer without reasoning.
func (t *Temper) missing(i int) error {
	switch t.Words {
	case WordsMoonshot:
		return t.refuse("invalid_request_error", "thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
	case WordsDeepSeek:
		return t.refuse("invalid_request_error", "The `reasoning_content` in the thinking mode must be passed back to the API.")
	default:
		return t.refuse("invalid_request", "missing '%s' in messages[%d]", t.named(), i)
	}
}
