// Package mcptool decides which tools of servers a run has, how its model sees them, and when a
// definition has to be approved again. A server is one of the Model Context Protocol, or a
// ToolService.
//
// A run keeps the definitions that it began with. What a server lists later changes only
// whether a call runs, asks or is an error, never the beginning of the model's requests:
// tools that come later are found by find_tools alone, and a changed definition asks.
//
// What a server says of its tools is not trusted: unless its settings trust its hints, its
// tools write, ask and run alone. The package is pure.
package mcptool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// maxDescription bounds what a model reads of a tool of a server, in bytes.
const maxDescription = 4 << 10

// Digest returns the digest of a definition: SHA-256 of its name, description, schema and
// hints, in lower-case hexadecimal. The order of keys in the schema and in the hints does not
// matter.
func Digest(d *harnessv1.McpDefinition) string {
	sum := sha256.New()
	for _, part := range []string{d.GetTool(), d.GetTitle(), d.GetDescription(), canonical(d.GetSchema()), canonical(d.GetHints())} {
		_, _ = sum.Write([]byte(part))
		_, _ = sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// canonical returns JSON with sorted keys; text that is none, unchanged.
func canonical(text string) string {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(data)
}

// Hints are what a server says of the effects of a tool: the annotations of the Model Context
// Protocol, and those that only a ToolService has.
type Hints struct {
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  bool  `json:"idempotentHint,omitempty"`
	OpenWorld   bool  `json:"openWorldHint,omitempty"`

	ParallelSafe bool   `json:"parallelSafeHint,omitempty"`
	Explores     bool   `json:"exploresHint,omitempty"`
	Durability   string `json:"durabilityHint,omitempty"`
	// Remembers: the service keeps the keys of calls, so a call can be sent again. It is no hint on
	// the effects of a tool, and counts whether or not the service is trusted.
	Remembers bool `json:"remembersKeys,omitempty"`
}

// hintsOf returns the hints of a definition; none if they cannot be read.
func hintsOf(d *harnessv1.McpDefinition) Hints {
	h := Hints{}
	if json.Unmarshal([]byte(d.GetHints()), &h) != nil {
		return Hints{}
	}
	return h
}

// IsService reports whether a server is a ToolService.
func IsService(server *harnessv1.McpServer) bool { return server.GetGrpc() != "" || server.GetHost() }

// Remembered reports whether calls of a tool can be sent again because its server remembers their
// keys. Only a ToolService does.
func Remembered(server *harnessv1.McpServer, d *harnessv1.McpDefinition) bool {
	return IsService(server) && hintsOf(d).Remembers
}

// Prefix returns the beginning of the names of a server's tools: NAME__ for a ToolService, else
// mcp__NAME__.
func Prefix(server *harnessv1.McpServer) string {
	if IsService(server) {
		return server.GetName() + "__"
	}
	return "mcp__" + server.GetName() + "__"
}

// Spec returns a tool as a model sees it. The error is why it cannot be used.
func Spec(server *harnessv1.McpServer, d *harnessv1.McpDefinition) (*harnessv1.ToolSpec, error) {
	converted, err := dialect.Convert(d.GetSchema())
	if err != nil {
		return nil, err
	}
	description := cmp.Or(dialect.Text(d.GetDescription(), maxDescription), dialect.Text(d.GetTitle(), maxDescription), "A tool of the server "+server.GetName()+".")
	return &harnessv1.ToolSpec{
		Name: dialect.Name(Prefix(server), d.GetTool()), Description: description, ParametersSchema: converted.Schema,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: annotations(server, d),
	}, nil
}

func annotations(server *harnessv1.McpServer, d *harnessv1.McpDefinition) *harnessv1.ToolAnnotations {
	a := &harnessv1.ToolAnnotations{Writes: true, Asks: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING}
	if server.GetTrust() == TrustHints {
		h := hintsOf(d)
		a.Idempotent = h.Idempotent || h.ReadOnly
		a.Reads, a.Writes, a.ParallelSafe = h.ReadOnly, !h.ReadOnly, h.ReadOnly
		if h.OpenWorld { // another call may return something else
			a.Durability = harnessv1.Durability_DURABILITY_NON_REPLAYABLE
		}
		a.Asks = !h.ReadOnly && (h.Destructive == nil || *h.Destructive)
		if IsService(server) {
			a.ParallelSafe, a.Explores = h.ParallelSafe, h.Explores
			if d, known := harnessv1.Durability_value[h.Durability]; known && d != 0 {
				a.Durability = harnessv1.Durability(d)
			}
		}
	}
	a.Idempotent = a.Idempotent || slices.Contains(server.GetIdempotent(), d.GetTool()) || Remembered(server, d)
	return a
}

// TrustHints is the trust of a server whose hints count.
const TrustHints = "hints"

// Encode returns tools as JSON, in a form that depends on them alone.
func Encode(tools *harnessv1.McpTools) (string, error) {
	data, err := protojson.Marshal(tools)
	if err != nil {
		return "", err
	}
	return canonical(string(data)), nil // protojson varies its white space
}

// Decode reads what Encode has written.
func Decode(text string) (*harnessv1.McpTools, error) {
	tools := &harnessv1.McpTools{}
	return tools, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(text), tools)
}

// difference describes, for people, how a definition differs from the one before: lines with
// - and +. It has at most 4 KiB.
func difference(before, now *harnessv1.McpDefinition) string {
	var b strings.Builder
	part := func(name, was, is string) {
		if was == is {
			return
		}
		b.WriteString(name + ":\n")
		old, fresh := strings.Split(was, "\n"), strings.Split(is, "\n")
		for _, line := range old {
			if !slices.Contains(fresh, line) {
				b.WriteString("- " + line + "\n")
			}
		}
		for _, line := range fresh {
			if !slices.Contains(old, line) {
				b.WriteString("+ " + line + "\n")
			}
		}
	}
	part("title", before.GetTitle(), now.GetTitle())
	part("description", before.GetDescription(), now.GetDescription())
	part("schema", indented(before.GetSchema()), indented(now.GetSchema()))
	part("hints", indented(before.GetHints()), indented(now.GetHints()))
	return dialect.Text(strings.TrimSuffix(b.String(), "\n"), maxDifference)
}

const maxDifference = 4 << 10

func indented(text string) string {
	var value any
	if json.Unmarshal([]byte(canonical(text)), &value) != nil {
		return text
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return text
	}
	return string(data)
}
