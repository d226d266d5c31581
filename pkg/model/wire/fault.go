package wire

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Fault is what a service reports in an error body. Each field may be empty.
type Fault struct {
	// Code of the error, such as context_length_exceeded or 400; without one, the code in
	// its details.
	Code string
	// Type of the error, such as invalid_request_error. If a gateway reports none, it is the
	// code or the type of the error that the gateway passes on.
	Type string
	// Message is for people. Of a structured message it has the mistake and its place, never
	// the values of the request that some servers repeat. If a gateway passes on an error,
	// that one's message is at the end.
	Message string
	// Param is the member of the request that is wrong, such as reasoning.summary.
	Param string
}

// maxPassedOn bounds how many gateways can pass on an error.
const maxPassedOn = 3

// ParseFault reads an error body of any form that services use: an error
// object, an error text, or code, type, message, param and detail at the top. A body that is
// not a JSON object has no fault; of an array, which Gemini's compatible address sends, the
// first element counts.
func ParseFault(body []byte) Fault { return parseFault(body, maxPassedOn) }

func parseFault(body []byte, gateways int) Fault {
	var elements []json.RawMessage
	if json.Unmarshal(body, &elements) == nil && len(elements) > 0 {
		body = elements[0]
	}
	var top struct {
		faultMembers
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		return Fault{}
	}
	var e struct {
		faultMembers
		Details  json.RawMessage `json:"details"`
		Metadata json.RawMessage `json:"metadata"`
	}
	switch {
	case Absent(top.Error):
		f := top.fault()
		if f.Message == "" {
			f.Message = message(top.Detail)
		}
		if f.Type == "error" { // the type of the event
			f.Type = ""
		}
		return f
	case json.Unmarshal(top.Error, &e) == nil:
		f := e.fault()
		if f.Code == "" {
			f.Code = detailedCode(e.Details)
		}
		if gateways > 0 {
			f.add(passedOn(e.Metadata, gateways-1))
		}
		return f
	default:
		return Fault{Code: scalar(top.Code), Message: message(top.Error)}
	}
}

// faultMembers are the members of an error, at the top of a body or in its error object.
type faultMembers struct {
	Code    json.RawMessage `json:"code"`
	Type    json.RawMessage `json:"type"`
	Message json.RawMessage `json:"message"`
	Param   json.RawMessage `json:"param"`
}

func (m *faultMembers) fault() Fault {
	return Fault{Code: scalar(m.Code), Type: scalar(m.Type), Message: message(m.Message), Param: scalar(m.Param)}
}

// scalar is Text of a member that is no object and no array; of those it is empty.
func scalar(raw json.RawMessage) string {
	if structured(raw) {
		return ""
	}
	return Text(raw)
}

// detailedCode returns the error_code of details that are an object.
func detailedCode(details json.RawMessage) string {
	var d struct {
		Code String `json:"error_code"`
	}
	if json.Unmarshal(details, &d) != nil {
		return ""
	}
	return string(d.Code)
}

// passedOn reads the error of the service that a gateway has called. OpenRouter has it in
// metadata.raw: a string with the body, which may be plain text, or the body's object
// (openrouter.ai/docs/api-reference/errors).
func passedOn(metadata json.RawMessage, gateways int) Fault {
	var m struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return Fault{}
	}
	body := Text(m.Raw)
	if f := parseFault([]byte(body), gateways); f.Message != "" {
		return f
	}
	return Fault{Message: messageOf(body, maxNesting)}
}

// add adds the error that a gateway passes on.
func (f *Fault) add(inner Fault) {
	if f.Type == "" {
		f.Type = inner.Type
		if _, err := strconv.Atoi(inner.Code); err != nil && inner.Code != "" {
			f.Type = inner.Code
		}
	}
	switch {
	case f.Message == "":
		f.Message = inner.Message
	case !strings.Contains(f.Message, inner.Message):
		f.Message += ": " + inner.Message
	}
}
