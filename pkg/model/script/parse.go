package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxDelay is the longest delay of an entry.
const maxDelay = 24 * time.Hour

// Parse reads a script. An error names the line: "script:3: …".
func Parse(data []byte) (*Script, error) { return parse("script", data) }

func parse(file string, data []byte) (*Script, error) {
	p := &parser{file: file}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: the script is empty; it has the field turns or jobs", file)
	case err != nil:
		return nil, p.syntax(err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		return nil, p.fail(&more, "a script is one document")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(err)
	}
	if len(doc.Content) == 0 {
		return nil, p.fail(&doc, "the script is empty; it has the field turns or jobs")
	}
	s := &Script{}
	root := doc.Content[0]
	given := false
	err := p.mapping(root, "the script", fields{
		"turns": func(n *yaml.Node) (err error) {
			given = true
			s.turns, err = p.turns(n)
			return err
		},
		"agents": func(n *yaml.Node) (err error) {
			s.agents, err = p.agents(n)
			return err
		},
		"jobs": func(n *yaml.Node) (err error) {
			given = true
			s.jobs, err = p.jobs(n)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, p.fail(root, "the field turns is missing")
	}
	s.index()
	return s, nil
}

// parser reads nodes. Its errors name the file and the line of the node.
type parser struct {
	file string
	// mappings and written count the nodes and bytes that were read: with aliases a small file can expand to a
	// huge script.
	mappings, written int
}

// maxMappings bounds the mappings of a script, aliases expanded, and maxWritten the bytes
// of all arguments and answers.
const (
	maxMappings = 500_000
	maxWritten  = 64 << 20
)

// fields are the members that a mapping may have.
type fields map[string]func(*yaml.Node) error

func (p *parser) turns(n *yaml.Node) ([]turn, error) {
	var turns []turn
	err := p.sequence(n, "turns", func(n *yaml.Node) error {
		t, err := p.turn(n)
		turns = append(turns, t)
		return err
	})
	return turns, err
}

// agents reads the scripts of sub-agents.
func (p *parser) agents(n *yaml.Node) (map[string]*Script, error) {
	all := map[string]*Script{}
	names := fields{}
	if n = deref(n); n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "agents must be a mapping of names of sub-agents to their turns")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if name == "" {
			return nil, p.fail(n.Content[i], "a name of agents must not be empty")
		}
		names[name] = func(n *yaml.Node) error {
			s, given := &Script{}, false
			err := p.mapping(n, "agents."+name, fields{"turns": func(n *yaml.Node) (err error) {
				given = true
				s.turns, err = p.turns(n)
				return err
			}})
			if err == nil && !given {
				err = p.fail(n, "agents.%s: the field turns is missing", name)
			}
			s.index()
			all[name] = s
			return err
		}
	}
	return all, p.mapping(n, "agents", names)
}

func (p *parser) turn(n *yaml.Node) (turn, error) {
	var t turn
	err := p.entry(n, "an entry of turns", &t, nil, fields{
		"when": func(n *yaml.Node) error {
			t.when = &condition{}
			err := p.mapping(n, "when", fields{
				"last_contains": func(n *yaml.Node) error { return p.text(n, "last_contains", &t.when.lastContains) },
			})
			if err == nil && t.when.lastContains == "" {
				err = p.fail(n, "when needs last_contains, which is not empty")
			}
			return err
		},
	})
	return t, err
}

// entry reads an answer or an error. answers are further fields of an answer, both are
// further fields of either.
func (p *parser) entry(n *yaml.Node, what string, t *turn, answers, both fields) error {
	ofAnswers := fields{
		"text":      func(n *yaml.Node) error { return p.text(n, "text", &t.text) },
		"reasoning": func(n *yaml.Node) error { return p.text(n, "reasoning", &t.reasoning) },
		"usage":     func(n *yaml.Node) error { return p.usage(n, &t.usage) },
		"calls": func(n *yaml.Node) error {
			return p.sequence(n, "calls", func(n *yaml.Node) error {
				c, err := p.call(n)
				t.calls = append(t.calls, c)
				return err
			})
		},
		"finish_reason": func(n *yaml.Node) error {
			return p.oneOf(n, "finish_reason", &t.finish, "stop", "tool_calls", "length", "content_filter")
		},
	}
	maps.Copy(ofAnswers, answers)
	known := fields{
		"delay": func(n *yaml.Node) error { return p.delay(n, &t.delay) },
		"error": func(n *yaml.Node) error {
			t.fail = &failure{}
			return p.failure(n, t.fail)
		},
	}
	maps.Copy(known, both)
	var found []string
	for name, read := range ofAnswers {
		known[name] = func(n *yaml.Node) error { found = append(found, name); return read(n) }
	}
	err := p.mapping(n, what, known)
	if err == nil && t.fail != nil && len(found) > 0 {
		err = p.fail(n, "an entry with error has no %s", strings.Join(found, ", "))
	}
	return err
}

func (p *parser) call(n *yaml.Node) (call, error) {
	var c call
	var given int
	err := p.mapping(n, "a call", fields{
		"id":   func(n *yaml.Node) error { return p.text(n, "id", &c.id) },
		"name": func(n *yaml.Node) error { return p.text(n, "name", &c.name) },
		"arguments": func(n *yaml.Node) error {
			given++
			if n = deref(n); n.Kind == yaml.ScalarNode {
				return p.text(n, "arguments", &c.arguments)
			}
			if n.Kind != yaml.MappingNode {
				return p.fail(n, "arguments must be a mapping or a text")
			}
			j := jsonWriter{parser: p, what: "arguments"}
			err := j.value(n, 0)
			c.arguments = j.out.String()
			return p.wrote(n, len(c.arguments), err)
		},
		"raw_arguments": func(n *yaml.Node) error {
			given++
			return p.text(n, "raw_arguments", &c.arguments)
		},
	})
	switch {
	case err != nil:
	case c.name == "":
		err = p.fail(n, "a call needs a name")
	case given == 0:
		c.arguments = "{}"
	case given > 1:
		err = p.fail(n, "a call has arguments or raw_arguments, not both")
	}
	return c, err
}

func (p *parser) usage(n *yaml.Node, u *usage) error {
	return p.mapping(n, "usage", fields{
		"input_tokens":        func(n *yaml.Node) error { return p.count(n, "input_tokens", &u.input) },
		"output_tokens":       func(n *yaml.Node) error { return p.count(n, "output_tokens", &u.output) },
		"cached_input_tokens": func(n *yaml.Node) error { return p.count(n, "cached_input_tokens", &u.cached) },
		"reasoning_tokens":    func(n *yaml.Node) error { return p.count(n, "reasoning_tokens", &u.reasoning) },
	})
}

func (p *parser) failure(n *yaml.Node, f *failure) error {
	f.retryAfter = -1
	return p.mapping(n, "error", fields{
		"message": func(n *yaml.Node) error { return p.line(n, "message", &f.message) },
		"status": func(n *yaml.Node) error {
			var status uint64
			if err := p.count(n, "status", &status); err != nil {
				return err
			}
			if status < 400 || status > 599 {
				return p.fail(n, "status must be from 400 to 599; leave it out for a broken connection")
			}
			f.status = int(status)
			return nil
		},
		"retry_after": func(n *yaml.Node) error {
			tag := deref(n).ShortTag()
			seconds, err := strconv.ParseFloat(deref(n).Value, 64)
			if err != nil || tag != "!!int" && tag != "!!float" || !(seconds >= 0) || seconds > maxDelay.Seconds() {
				return p.fail(n, "retry_after must be a number of seconds from 0 to %.0f", maxDelay.Seconds())
			}
			f.retryAfter = time.Duration(seconds * float64(time.Second))
			return nil
		},
		"context_exceeded": func(n *yaml.Node) error {
			if n = deref(n); n.ShortTag() != "!!bool" || n.Decode(&f.contextExceeded) != nil {
				return p.fail(n, "context_exceeded must be true or false")
			}
			return nil
		},
		"prompt_tokens": func(n *yaml.Node) error { return p.size(n, "prompt_tokens", &f.promptTokens) },
		"window_tokens": func(n *yaml.Node) error { return p.size(n, "window_tokens", &f.windowTokens) },
	})
}

// size reads a number of tokens in a request.
func (p *parser) size(n *yaml.Node, name string, into *uint32) error {
	var size uint64
	if err := p.count(n, name, &size); err != nil {
		return err
	}
	if size > math.MaxUint32 {
		return p.fail(n, "%s must be at most %d", name, uint32(math.MaxUint32))
	}
	*into = uint32(size)
	return nil
}

// mapping calls the function of each member. It rejects unknown and duplicate
// members.
func (p *parser) mapping(n *yaml.Node, what string, known fields) error {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "%s must be a mapping", what)
	}
	if p.mappings++; p.mappings > maxMappings {
		return p.fail(n, "the script has more than %d mappings, aliases expanded", maxMappings)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		read, ok := known[key.Value]
		if !ok || key.Kind != yaml.ScalarNode {
			var names []string
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			return p.fail(key, "unknown field %q; %s has %s", key.Value, what, strings.Join(names, ", "))
		}
		if seen[key.Value] {
			return p.fail(key, "duplicate field %s", key.Value)
		}
		seen[key.Value] = true
		if err := read(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) sequence(n *yaml.Node, what string, item func(*yaml.Node) error) error {
	n = deref(n)
	if n.Kind != yaml.SequenceNode {
		return p.fail(n, "%s must be a list", what)
	}
	for _, c := range n.Content {
		if err := item(c); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) text(n *yaml.Node, what string, into *string) error {
	n = deref(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return p.fail(n, "%s must be a text", what)
	}
	*into = n.Value
	return nil
}

func (p *parser) line(n *yaml.Node, what string, into *string) error {
	if err := p.text(n, what, into); err != nil {
		return err
	}
	if strings.ContainsAny(*into, "\r\n") {
		return p.fail(n, "%s must be one line", what)
	}
	return nil
}

func (p *parser) oneOf(n *yaml.Node, what string, into *string, values ...string) error {
	if err := p.text(n, what, into); err != nil {
		return err
	}
	if !slices.Contains(values, *into) {
		return p.fail(n, "%s must be one of %s", what, strings.Join(values, ", "))
	}
	return nil
}

func (p *parser) count(n *yaml.Node, what string, into *uint64) error {
	n = deref(n)
	if n.ShortTag() != "!!int" || n.Decode(into) != nil || *into > math.MaxInt64 {
		return p.fail(n, "%s must be a whole number from 0", what)
	}
	return nil
}

func (p *parser) delay(n *yaml.Node, into *time.Duration) error {
	var text string
	if err := p.text(n, "delay", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDelay {
		return p.fail(n, "delay must be a duration from 0s to %s, such as 200ms", maxDelay)
	}
	*into = d
	return nil
}

// wrote counts arguments and answers.
func (p *parser) wrote(n *yaml.Node, size int, err error) error {
	if p.written += size; err == nil && p.written > maxWritten {
		return p.fail(n, "all arguments and answers together exceed %d bytes, aliases expanded", maxWritten)
	}
	return err
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.file, max(n.Line, 1), fmt.Sprintf(format, args...))
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+): `) })

// syntax returns an error of the YAML reader with the file and the line in front.
func (p *parser) syntax(err error) error {
	text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
	line := "1"
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, text = m[1], strings.Replace(text, m[0], "", 1)
	}
	return fmt.Errorf("%s:%s: not YAML: %s", p.file, line, text)
}

// deref follows an alias to its target.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
