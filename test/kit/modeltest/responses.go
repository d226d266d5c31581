package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// maxCacheKey is the length from which the service refuses a cache key.
const maxCacheKey = 64

// includeEncrypted requests reasoning that only the server can read.
const includeEncrypted = "reasoning.encrypted_content"

// responsesDetails are what a request of the Responses protocol has beyond a chat
// completion.
type responsesDetails struct {
	encrypted bool           // encrypted reasoning is requested
	summary   bool           // a summary of the reasoning is requested
	seals     []seal         // the reasoning that comes back
	texts     []returnedText // the texts of the assistant that come back
	sealed    int            // bytes of the reasoning that comes back
}

// returnedText is a text of the assistant that comes back.
type returnedText struct{ text, phase string }

// responsesError is a refusal of the Responses protocol.
type responsesError struct {
	status               int
	code, param, message string
}

// Error returns the message.
func (e *responsesError) Error() string { return e.message }

func (e *responsesError) body() []byte {
	return mustJSON(map[string]any{"error": map[string]any{
		"message": e.message, "type": "invalid_request_error", "param": nullable(e.param), "code": nullable(e.code),
	}})
}

func invalid(param, format string, values ...any) error {
	return &responsesError{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, values...)}
}

// ParseResponsesRequest validates the body of a request of the Responses protocol as the
// real service does. It also refuses members that the service takes but this project does
// not send: schemas that are strict or may become so, stored responses, sampling parameters,
// a forced tool. The error is the text of the refusal.
func ParseResponsesRequest(body []byte) (*Request, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, invalid("", "We could not parse the JSON body of your request: %v", err)
	}
	if err := o.known("", "model", "input", "instructions", "tools", "store", "include", "reasoning", "max_output_tokens", "prompt_cache_key", "stream",
		"service_tier", "metadata", "text"); err != nil {
		return nil, err
	}
	r := &Request{Protocol: ProtocolResponses, IncludeUsage: true}
	for _, parse := range []func(object) error{r.responsesHead, r.responsesReasoning, r.responsesTools, r.responsesFormat, r.responsesInput} {
		if err := parse(o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// known refuses members that are not in names, in the words of the service.
func (o object) known(at string, names ...string) error {
	for name := range o {
		if !slices.Contains(names, name) {
			return &responsesError{status: http.StatusBadRequest, code: "unknown_parameter", param: at + name, message: fmt.Sprintf("Unknown parameter: '%s%s'.", at, name)}
		}
	}
	return nil
}

// member decodes a member that may be missing; its type must be what.
func (o object) member(at, name, what string, into any) error {
	raw, ok := o[name]
	if !ok {
		return nil
	}
	if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		return invalid(at+name, "Invalid type for '%s%s': expected %s.", at, name, what)
	}
	return nil
}

// required decodes a text that must not be empty.
func (o object) required(at, name string, into *string) error {
	if _, ok := o[name]; !ok {
		return invalid(at+name, "Missing required parameter: '%s%s'.", at, name)
	}
	if err := o.member(at, name, "a string", into); err != nil {
		return err
	}
	if *into == "" {
		return invalid(at+name, "Invalid '%s%s': empty string. Expected a string with minimum length 1.", at, name)
	}
	return nil
}

// minOutput is the smallest limit of the output that the service takes.
const minOutput = 16

func (r *Request) responsesHead(o object) error {
	if err := o.required("", "model", &r.Model); err != nil {
		return err
	}
	if err := o.member("", "stream", "a boolean", &r.Stream); err != nil {
		return err
	}
	limit := minOutput
	if err := o.member("", "max_output_tokens", "an integer", &limit); err != nil {
		return err
	}
	if limit < minOutput {
		return invalid("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", minOutput, limit)
	}
	if _, ok := o["max_output_tokens"]; ok {
		r.MaxTokens = limit
	}
	var key, instructions string
	if err := o.member("", "prompt_cache_key", "a string", &key); err != nil {
		return err
	}
	if len(key) > maxCacheKey {
		return invalid("prompt_cache_key", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length %d.", maxCacheKey)
	}
	if err := o.member("", "instructions", "a string", &instructions); err != nil {
		return err
	}
	if _, ok := o["instructions"]; ok {
		r.Messages = append(r.Messages, RequestMessage{Role: "system", Content: instructions, HasContent: true})
	}
	store := true
	if err := o.member("", "store", "a boolean", &store); err != nil {
		return err
	}
	if store {
		return invalid("store", "'store' must be false: it is true by default, and the service then stores the response")
	}
	return nil
}

func (r *Request) responsesReasoning(o object) error {
	var include []string
	if err := o.member("", "include", "an array of strings", &include); err != nil {
		return err
	}
	for i, value := range include {
		if value != includeEncrypted {
			return invalid("include", "Invalid value: '%s'. Supported values of 'include[%d]' are: '%s'.", value, i, includeEncrypted)
		}
		r.responses.encrypted = true
	}
	var reasoning object
	if err := o.member("", "reasoning", "an object", &reasoning); err != nil {
		return err
	}
	if err := reasoning.known("reasoning.", "effort", "summary"); err != nil {
		return err
	}
	for name, values := range map[string][]string{
		"effort":  {"none", "minimal", "low", "medium", "high", "xhigh", "max"},
		"summary": {"auto", "concise", "detailed"},
	} {
		var value string
		if err := reasoning.member("reasoning.", name, "a string", &value); err != nil {
			return err
		}
		if _, ok := reasoning[name]; ok && !slices.Contains(values, value) {
			return &responsesError{status: http.StatusBadRequest, code: "unsupported_value", param: "reasoning." + name,
				message: fmt.Sprintf("Unsupported value: 'reasoning.%s' does not support '%s' with this model.", name, value)}
		}
	}
	_, r.responses.summary = reasoning["summary"]
	return nil
}

func (r *Request) responsesTools(o object) error {
	var list []object
	if err := o.member("", "tools", "an array of objects", &list); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("tools[%d].", i)
		if err := o.known(at, "type", "name", "description", "parameters", "strict"); err != nil {
			return err
		}
		var t RequestTool
		var kind string
		if err := o.required(at, "type", &kind); err != nil || kind != "function" {
			return invalid(at+"type", "Invalid value: '%s'. Supported values of '%stype' are: 'function'.", kind, at)
		}
		if err := o.required(at, "name", &t.Name); err != nil {
			return err
		}
		if !functionName.MatchString(t.Name) || seen[t.Name] {
			return invalid(at+"name", "Invalid '%sname': %q does not match pattern '%s', or is there twice.", at, t.Name, functionName)
		}
		seen[t.Name] = true
		if err := o.member(at, "description", "a string", &t.Description); err != nil {
			return err
		}
		if err := checkSchema(o["parameters"]); err != nil {
			return &responsesError{status: http.StatusBadRequest, code: "invalid_function_parameters", param: at + "parameters",
				message: fmt.Sprintf("Invalid schema for function '%s': %v.", t.Name, err)}
		}
		strict := true
		if err := o.member(at, "strict", "a boolean", &strict); err != nil {
			return err
		}
		if strict {
			return invalid(at+"strict", "'%sstrict' must be false: without it the service makes schemas strict, and optional parameters come filled", at)
		}
		t.Parameters = o["parameters"]
		r.Tools = append(r.Tools, t)
	}
	return nil
}
