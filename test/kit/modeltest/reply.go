package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Fault is a failure of a reply.
type Fault int

// The faults. Those within the stream come after the first half of the reply's
// text and calls; without streaming, after half of the body.
const (
	// FaultNone is a reply without a fault.
	FaultNone Fault = iota
	// FaultCut breaks the connection within the stream.
	FaultCut
	// FaultNoFinish ends the stream in order but without a finish reason, and without [DONE].
	FaultNoFinish
	// FaultError sends an error object within the stream, then ends in order.
	FaultError
	// FaultHang sends nothing, not even headers, until released.
	FaultHang
	// FaultSilence sends half of the stream and then nothing until released.
	FaultSilence
	// FaultGarbage sends invalid JSON with status 200.
	FaultGarbage
	// FaultDrop closes the connection without an answer.
	FaultDrop
	// FaultFailed ends the stream with a failed response; in the Responses protocol only.
	FaultFailed
)

// Quirks are habits of compatible servers that are no faults: they do not change
// the meaning of a response.
type Quirks struct {
	// IgnoreStream answers plain JSON to a streaming request.
	IgnoreStream bool
	// AlwaysStream sends events to a request for plain JSON.
	AlwaysStream bool
	// OmitIndex leaves the index out of tool-call deltas.
	OmitIndex bool
	// WholeCalls sends each call in one delta.
	WholeCalls bool
	// ArgumentsAsObject sends the arguments as a JSON object instead of a string.
	ArgumentsAsObject bool
	// RepeatIDs sends the id and the name of a call with each of its deltas.
	RepeatIDs bool
	// UsageInLastChoice sends the usage with the finish reason instead of in a separate chunk.
	UsageInLastChoice bool
	// NoDone leaves out the closing [DONE].
	NoDone bool
	// NoFinish leaves out the finish reason; chat completions only.
	NoFinish bool
	// NoLastNewline ends the stream without the empty line after its last event.
	NoLastNewline bool
	// KeepAlive sends comments between the events.
	KeepAlive bool
	// NullErrors sends "error": null with each chunk.
	NullErrors bool
	// ContentType replaces the content type.
	ContentType string
	// Foreign sends events and blocks of unknown types in between; in the Messages
	// protocol only.
	Foreign bool
	// SameIndex gives every block of a message the index 0; in the Messages protocol
	// only.
	SameIndex bool
	// BothMembers sends reasoning as reasoning and as reasoning_content.
	BothMembers bool
	// Thinking sends a block of thinking before the text; in the Messages protocol
	// only.
	Thinking string
	// OmitOutput leaves the output out of the last event; in the Responses protocol only.
	OmitOutput bool
	// FlatErrors sends the members of an error in mid-stream without an object around
	// them; in the Responses protocol only.
	FlatErrors bool
}

// Usage is the consumption that a reply reports.
type Usage struct {
	// Input counts tokens sent, Output tokens received, Cached those of Input that
	// came from the cache, Written those of Input that were written to it.
	Input, Output, Cached, Written uint64
	// Reasoning are those of Output that were reasoning.
	Reasoning uint64
}

// Reply is the response to one request. The zero Reply is an empty response with
// the finish reason stop.
type Reply struct {
	// Text is the content.
	Text string
	// Calls are the tool calls.
	Calls []Call
	// Parts are the whole answer in its order, if it has more than a text followed by
	// calls; Text and Calls are then not set.
	Parts []ReplyPart
	// FinishReason defaults to tool_calls with calls and to stop without. These, length
	// and content_filter are translated to the protocol, others are sent unchanged.
	FinishReason string
	// Refusal and RefusalText are the category and the explanation of a refusal, which is
	// the finish reason content_filter; in the Messages protocol. In the others, RefusalText
	// is the text of the model instead of an answer.
	Refusal, RefusalText string
	// Usage is reported when set, in a stream only if the request includes it.
	Usage *Usage
	// Model is the name of the model in the response; the requested one by default.
	Model string
	// Fragment is the length in bytes of text and argument deltas; default 7.
	Fragment int

	// Status other than 0 and 200 makes the reply an error.
	Status int
	// Header is added to the response, Retry-After for one.
	Header map[string]string
	// ErrorCode and ErrorMessage are those of the error object; in the Messages protocol
	// the code is the type, by default the one of the status.
	ErrorCode, ErrorMessage string
	// Body replaces the whole body, whatever the status.
	Body string

	// Fault is the failure.
	Fault Fault
	// Quirks are the habits of the server.
	Quirks Quirks
}

// ReplyPart is one piece of a reply. One field but Phase is set.
type ReplyPart struct {
	// Text is a piece of the content.
	Text string
	// Phase is the phase of a Text: commentary or final_answer; in the Responses protocol
	// only.
	Phase string
	// Call is a tool call.
	Call *Call
	// Thinking is reasoning. The server makes what only it can read.
	Thinking *Thinking
}

// Thinking is a piece of reasoning.
type Thinking struct {
	// Text for people; may be empty.
	Text string
	// Redacted leaves the text out, in the way of the protocol.
	Redacted bool
	// Size is the least number of bytes that only the server can read; default 32.
	Size int
}

// parts returns the answer in its order.
func (r Reply) parts() []ReplyPart {
	if r.Parts != nil {
		return r.Parts
	}
	var parts []ReplyPart
	if r.Text != "" {
		parts = append(parts, ReplyPart{Text: r.Text})
	}
	for i := range r.Calls {
		parts = append(parts, ReplyPart{Call: &r.Calls[i]})
	}
	return parts
}

// text returns the whole text of the answer, and calls returns its calls.
func (r Reply) text() string {
	var text strings.Builder
	for _, p := range r.parts() {
		text.WriteString(p.Text)
	}
	return text.String()
}

func (r Reply) calls() []Call {
	var calls []Call
	for _, p := range r.parts() {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

func (r Reply) finishReason() string {
	switch {
	case r.FinishReason != "":
		return r.FinishReason
	case len(r.calls()) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

func (r Reply) callID(i int) string {
	if id := r.calls()[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_%d", i)
}

func (r Reply) arguments(text string) any {
	if r.Quirks.ArgumentsAsObject && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func (u *Usage) json() map[string]any {
	details := map[string]any{"cached_tokens": u.Cached}
	if u.Written > 0 {
		details["cache_write_tokens"] = u.Written
	}
	usage := map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output, "prompt_tokens_details": details,
	}
	if u.Reasoning > 0 {
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": u.Reasoning}
	}
	return usage
}

// errorBody is the body of an error reply in the service's form.
func (r Reply) errorBody() []byte {
	message := r.ErrorMessage
	if message == "" {
		message = fmt.Sprintf("scripted failure %d", r.Status)
	}
	return mustJSON(map[string]any{"error": map[string]any{
		"message": message, "type": "test_error", "param": nil, "code": nullable(r.ErrorCode),
	}})
}

// frame is one server-sent event; the event is not named in every protocol.
type frame struct {
	event string
	data  []byte
}

func (f frame) String() string {
	if f.event == "" {
		return "data: " + string(f.data)
	}
	return "event: " + f.event + "\ndata: " + string(f.data)
}

// pieces cuts text into runs of about size bytes, at rune borders.
func pieces(text string, size int) []string {
	if size <= 0 {
		size = 7
	}
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("modeltest: %v", err))
	}
	return b
}
