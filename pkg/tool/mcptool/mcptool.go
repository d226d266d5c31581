// Package mcptool decides which tools of servers of the Model Context Protocol a run has,
// how its model sees them, and when a definition has to be approved again.
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

// MaxDescription bounds what a model reads of a tool of a server, in bytes.
const MaxDescription = 4 << 10

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

// hints are what a server says of the effects of a tool.
type hints struct {
	ReadOnly    bool  `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  bool  `json:"idempotentHint"`
}

// Spec returns a tool as a model sees it. The error is why it cannot be used.
func Spec(server *harnessv1.McpServer, d *harnessv1.McpDefinition) (*harnessv1.ToolSpec, error) {
	converted, err := dialect.Convert(d.GetSchema())
	if err != nil {
		return nil, err
	}
	description := cmp.Or(dialect.Text(d.GetDescription(), MaxDescription), dialect.Text(d.GetTitle(), MaxDescription), "A tool of the server "+server.GetName()+".")
	return &harnessv1.ToolSpec{
		Name: dialect.Name(server.GetName(), d.GetTool()), Description: description, ParametersSchema: converted.Schema,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: annotations(server, d),
	}, nil
}

func annotations(server *harnessv1.McpServer, d *harnessv1.McpDefinition) *harnessv1.ToolAnnotations {
	a := &harnessv1.ToolAnnotations{Writes: true, Asks: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING}
	if server.GetTrust() == TrustHints {
		h := hints{}
		_ = json.Unmarshal([]byte(d.GetHints()), &h)
		a.Idempotent = h.Idempotent || h.ReadOnly
		a.Reads, a.Writes, a.ParallelSafe = h.ReadOnly, !h.ReadOnly, h.ReadOnly
		a.Asks = !h.ReadOnly && (h.Destructive == nil || *h.Destructive)
	}
	a.Idempotent = a.Idempotent || slices.Contains(server.GetIdempotent(), d.GetTool())
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

// Difference describes, for people, how a definition differs from the one before: lines with
// - and +. It has at most 4 KiB.
func Difference(before, now *harnessv1.McpDefinition) string {
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
