package mcpclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// answerTo reads the response of a server to one request over HTTP. The SDK ends the connection
// for a body that is no message, and waits for ever for an answer with another id. Both become an
// error of the request, with its reason.
type answerTo struct {
	// id is that of the request; nil for none, such as that of a stream of notifications.
	id json.RawMessage
	// way is the delivery of the call of the request; nil if it is none.
	way *delivery
	// own is the answer; nil until it has come.
	own []byte
	// fault is why the messages that came are no answer.
	fault error
}

// newAnswer returns the answer to a request.
func newAnswer(request *http.Request) *answerTo {
	if request.Method != http.MethodPost {
		return &answerTo{}
	}
	return &answerTo{id: requestID(request), way: deliveryOf(request.Context())}
}

// requestID returns the id of the message that a request has sent; nil if it has none.
func requestID(request *http.Request) json.RawMessage {
	if request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	var message struct{ ID json.RawMessage }
	if json.NewDecoder(body).Decode(&message) != nil {
		return nil
	}
	return message.ID
}

// take returns the messages that the SDK reads: that of a body or an event, or those of its batch.
func (a *answerTo) take(data []byte) [][]byte {
	data = bytes.TrimSpace(data)
	var batch []json.RawMessage
	if len(data) > 0 && data[0] == '[' && json.Unmarshal(data, &batch) == nil {
		var all [][]byte
		for _, one := range batch {
			if message := a.one(one); message != nil {
				all = append(all, message)
			}
		}
		return all
	}
	if message := a.one(data); message != nil {
		return [][]byte{message}
	}
	return nil
}

// one returns a message as the SDK reads it; nil if it is none.
func (a *answerTo) one(message []byte) []byte {
	repaired, err := readable(message)
	if err != nil {
		a.fault = cmp.Or(unnamed(message), a.fault, notMessage("", message))
		return nil
	}
	if repaired != nil {
		message = bytes.TrimSpace(repaired)
	}
	var e envelope
	if a.id == nil || json.Unmarshal(message, &e) != nil || e.Method != nil {
		return message
	}
	if !bytes.Equal(e.ID, a.id) {
		stray := string(bytes.Trim(e.ID, `"`))
		if a.fault = strayID(stray); a.way != nil {
			a.way.stray.Store(&stray)
		}
		return message
	}
	if a.way != nil && e.Result != nil {
		a.way.read.Store(true)
	}
	a.own = message
	return message
}

// unnamed returns the error that a response without an id has: the protocol asks for such a response where
// the id could not be read. It is nil for other messages.
func unnamed(message []byte) error {
	var e envelope
	var rpc jsonrpc.Error
	if json.Unmarshal(message, &e) != nil || e.Method != nil || isNull(e.Error) || !isNull(e.ID) || json.Unmarshal(readableError(e.Error), &rpc) != nil {
		return nil
	}
	return errors.New(rpc.Message)
}

// missing returns the error that replaces the answer if none has come, and why is known; nil if not.
func (a *answerTo) missing() []byte {
	if a.own != nil || a.id == nil || a.fault == nil {
		return nil
	}
	code := int64(jsonrpc.CodeInternalError)
	switch {
	case errors.Is(a.fault, errStray):
		code = unreadableCode
	case errors.Is(a.fault, errNoMessage):
		code = doubtfulCode
	}
	return errorResponse(a.id, code, a.fault)
}

// notMessage returns why a body of a kind is not the answer.
func notMessage(kind string, body []byte) error {
	what := "it"
	if kind != "" {
		what = "it has the type " + kind + " and"
	}
	if text := content.Line(content.Clean(strings.ToValidUTF8(string(body[:min(len(body), 1000)]), "\uFFFD")), 120); text != "" {
		return noMessageError(what + " is not a message of the protocol: " + text)
	}
	return noMessageError(what + " is empty")
}

// noMessageError is the error of bytes that are no message.
type noMessageError string

func (e noMessageError) Error() string { return string(e) }

func (noMessageError) Is(target error) bool { return target == errNoMessage }

// bounded bounds the bytes read of the response to a request, and replaces a body that is no answer.
func bounded(response *http.Response, request *http.Request) *http.Response {
	body, kind := response.Body, response.Header.Get("Content-Type")
	answered := response.StatusCode >= 200 && response.StatusCode < 300
	var read io.Reader
	switch a := newAnswer(request); {
	case strings.HasPrefix(kind, "text/event-stream"):
		lines := newMessages(body)
		lines.events = &events{answer: a}
		read = lines
	case answered && a.id != nil:
		read = &document{body: body, kind: kind, answer: a}
		response.Header.Set("Content-Type", "application/json")
	default:
		read = io.LimitReader(body, maxMessage)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{read, body}
	return response
}

// document is a body that is the response to one request.
type document struct {
	body   io.Reader
	kind   string
	answer *answerTo
	read   io.Reader
}

// Read reads the response, or the error that replaces it.
func (d *document) Read(p []byte) (int, error) {
	if d.read == nil {
		data, err := io.ReadAll(io.LimitReader(d.body, maxMessage+1))
		if err != nil {
			return 0, err
		}
		d.read = bytes.NewReader(d.message(data))
	}
	return d.read.Read(p)
}

// message returns the answer that a body has.
func (d *document) message(data []byte) []byte {
	if len(data) > maxMessage {
		f := &frame{}
		if f.feed(data) == nil {
			return substitute(d.answer.id, f.key == "error" || f.failure)
		}
		data = data[:1000]
	} else {
		d.answer.take(data)
	}
	if d.answer.own != nil {
		return d.answer.own
	}
	if d.answer.fault == nil || !json.Valid(data) {
		kind, _, _ := strings.Cut(d.kind, ";")
		d.answer.fault = notMessage(strings.TrimSpace(kind), data)
	}
	return d.answer.missing()
}
