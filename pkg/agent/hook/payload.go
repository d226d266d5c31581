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

// given is a payload with the forms in which subscribers are given it, each made
// when it is first asked for.
type given struct {
	payload map[string]any
	vars    map[string]any
	text    string
	digest  string
	err     error
}

// aliasArguments is the name that expressions have for arguments.
const aliasArguments = "args"

// variables are the payload as expressions see it.
func (g *given) variables(p Point) map[string]any {
	if g.vars == nil {
		g.vars = make(map[string]any, len(g.payload)+4)
		g.vars["tool"] = p.Tool
		maps.Copy(g.vars, g.payload)
		g.vars["topic"], g.vars["turn"] = TopicName(p.Topic), p.Turn
		if args, ok := g.payload[fieldArguments]; ok {
			g.vars[aliasArguments] = args
		}
	}
	return g.vars
}

// encoded is the payload as a JSON object, with a digest of it: equal for equal
// payloads.
func (g *given) encoded() (text, digest string, err error) {
	if g.digest == "" && g.err == nil {
		shown := g.payload
		if _, twice := shown[aliasArguments]; twice {
			shown = maps.Clone(shown)
			delete(shown, aliasArguments)
		}
		if shown == nil {
			shown = map[string]any{}
		}
		g.text, g.err = Encode(shown)
		if g.err == nil && len(g.text) > MaxRequest {
			g.err = fmt.Errorf("the payload has %d bytes; a hook is given at most %d", len(g.text), MaxRequest)
		}
		sum := sha256.Sum256([]byte(g.text))
		g.digest = hex.EncodeToString(sum[:8])
	}
	return g.text, g.digest, g.err
}

// maxKey bounds the part of an idempotency key that the caller gives, in bytes.
const maxKey = 256

// key is the idempotency key of a call.
func (p Point) key(id, digest string) string {
	about := p.Key
	if len(about) > maxKey {
		sum := sha256.Sum256([]byte(about))
		about = hex.EncodeToString(sum[:])
	}
	return "hook:" + TopicName(p.Topic) + ":" + about + ":" + id + ":" + digest
}

// Encode is a value as JSON on one line, the keys of objects in order; texts are
// written as they are, without escapes for HTML.
func Encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("the payload cannot be written as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Decode is the JSON value of a text. Numbers are of type json.Number, so that they
// can be written again as they were.
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

// replacement is payload with what a verdict puts in the place of its one field that
// can be replaced; nil when that is what was there. Fields may be repeated as they
// are.
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
	if _, twice := replaced[aliasArguments]; twice && field == fieldArguments {
		replaced[aliasArguments] = change
	}
	return replaced, nil
}

// same says whether two values are the same JSON.
func same(a, b any) bool {
	one, err := Encode(a)
	other, err2 := Encode(b)
	return err == nil && err2 == nil && one == other
}
