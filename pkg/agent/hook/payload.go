package hook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// input is a payload in the forms that hooks receive, each made when it is first needed.
type input struct {
	payload map[string]any
	vars    map[string]any
	text    string
	digest  string
	err     error
}

// aliasArguments is the name of the arguments in expressions.
const aliasArguments = "args"

// variables returns the payload as expressions see it.
func (in *input) variables(p Point) map[string]any {
	if in.vars == nil {
		in.vars = make(map[string]any, len(in.payload)+4)
		in.vars["tool"] = p.Tool
		maps.Copy(in.vars, in.payload)
		in.vars["topic"], in.vars["turn"] = TopicName(p.Topic), p.Turn
		if args, ok := in.payload[fieldArguments]; ok {
			in.vars[aliasArguments] = args
		}
	}
	return in.vars
}

// encoded returns the payload as a JSON object, with its digest. Equal payloads have
// equal digests.
func (in *input) encoded() (text, digest string, err error) {
	if in.digest == "" && in.err == nil {
		payload := in.payload
		if _, both := payload[aliasArguments]; both {
			payload = maps.Clone(payload)
			delete(payload, aliasArguments)
		}
		if payload == nil {
			payload = map[string]any{}
		}
		in.text, in.err = Encode(payload)
		if in.err == nil && len(in.text) > MaxRequest {
			in.err = fmt.Errorf("the payload has %d bytes; a hook is given at most %d", len(in.text), MaxRequest)
		}
		sum := sha256.Sum256([]byte(in.text))
		in.digest = hex.EncodeToString(sum[:8])
	}
	return in.text, in.digest, in.err
}

// maxKey bounds the caller's part of an idempotency key, in bytes.
const maxKey = 256

// key returns the idempotency key of a call.
func (p Point) key(id, digest string) string {
	point := p.Key
	if len(point) > maxKey {
		sum := sha256.Sum256([]byte(point))
		point = hex.EncodeToString(sum[:])
	}
	return "hook:" + TopicName(p.Topic) + ":" + point + ":" + id + ":" + digest
}

// Encode returns a value as JSON on one line, with the keys of objects in order and
// without escapes for HTML.
func Encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("the payload cannot be written as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Decode returns the JSON value of a text. Numbers are of type json.Number, so encoding
// them again does not change them.
func Decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("something follows the value at byte %d", d.InputOffset())
	}
	return v, nil
}

// replacement returns payload with its replaceable field set from text, the payload of a
// verdict; nil if the field already has the value. The verdict may repeat other fields
// unchanged.
func replacement(field string, payload map[string]any, text string) (map[string]any, error) {
	v, err := Decode(text)
	if err != nil {
		return nil, fmt.Errorf("its payload is no JSON: %w", err)
	}
	changes, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("its payload is no JSON object with the fields that change")
	}
	for name, change := range changes {
		if name != field && !same(change, payload[name]) {
			return nil, fmt.Errorf("it replaces %q; only %s can be replaced here", name, field)
		}
	}
	change, ok := changes[field]
	if !ok {
		return nil, fmt.Errorf("its payload holds no %s to put in the place", field)
	}
	if field == fieldArguments {
		_, ok = change.(map[string]any)
	} else {
		_, ok = change.(string)
	}
	switch {
	case !ok && field == fieldArguments:
		return nil, fmt.Errorf("the %s of its payload are no JSON object", field)
	case !ok:
		return nil, fmt.Errorf("the %s of its payload is no text", field)
	case same(change, payload[field]):
		return nil, nil
	}
	replaced := maps.Clone(payload)
	replaced[field] = change
	if _, both := replaced[aliasArguments]; both && field == fieldArguments {
		replaced[aliasArguments] = change
	}
	return replaced, nil
}

// same reports whether two values encode to the same JSON.
func same(a, b any) bool {
	one, err := Encode(a)
	other, err2 := Encode(b)
	return err == nil && err2 == nil && one == other
}
