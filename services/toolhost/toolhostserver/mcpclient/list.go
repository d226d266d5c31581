package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// Bounds of a list of tools: pages, tools, and bytes of their definitions.
const (
	maxPages       = 200
	maxTools       = 2000
	maxDefinitions = 16 << 20
	maxDefinition  = 256 << 10
)

// toolList are the tools that a server lists, within the bounds. Those whose definitions cannot be
// taken are left out with a reason.
type toolList struct {
	tools   []*harnessv1.McpDefinition
	leftOut []*harnessv1.McpLeftOut
	seen    map[string]bool
	size    int
}

// add adds a tool; reason is why its definition cannot be taken, if not empty.
func (l *toolList) add(name string, d *harnessv1.McpDefinition, reason string) {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	switch {
	case reason == "" && (len(l.tools) >= maxTools || l.size > maxDefinitions):
		reason = "the server lists too many tools"
	case l.seen[name]:
		reason = "the server lists it twice"
	}
	l.seen[name] = true
	if reason != "" {
		if !l.full() {
			l.leftOut = append(l.leftOut, &harnessv1.McpLeftOut{Tool: content.Line(content.Clean(name), 128), Reason: reason})
		}
		return
	}
	l.size += len(d.GetDescription()) + len(d.GetSchema())
	l.tools = append(l.tools, d)
}

// full reports whether further tools would be left out without a word.
func (l *toolList) full() bool { return len(l.leftOut) >= maxTools }

// list lists the tools of a server. Those whose definitions cannot be taken are
// returned apart.
func list(ctx context.Context, client *mcp.ClientSession) (tools []*harnessv1.McpDefinition, leftOut []*harnessv1.McpLeftOut, err error) {
	if c := client.InitializeResult().Capabilities; c != nil && c.Tools == nil {
		return nil, nil, nil
	}
	l, cursor := &toolList{}, ""
	for range maxPages {
		page, err := client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		for _, t := range page.Tools {
			if t == nil || t.Name == "" {
				continue
			}
			d, reason := definition(t)
			l.add(t.Name, d, reason)
		}
		if page.NextCursor == "" || page.NextCursor == cursor || l.full() {
			return l.tools, l.leftOut, nil
		}
		cursor = page.NextCursor
	}
	l.add(fmt.Sprintf("those after page %d", maxPages), nil, "the server lists too many pages of tools")
	return l.tools, l.leftOut, nil
}

// definition returns a tool as it is recorded; reason is why it cannot be.
func definition(t *mcp.Tool) (d *harnessv1.McpDefinition, reason string) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, "its schema is not JSON"
	}
	if string(schema) == "null" {
		schema = []byte(noArguments)
	}
	d = &harnessv1.McpDefinition{
		Tool: strings.ToValidUTF8(t.Name, "\uFFFD"), Title: strings.ToValidUTF8(t.Title, "\uFFFD"),
		Description: strings.ToValidUTF8(t.Description, "\uFFFD"), Schema: strings.ToValidUTF8(string(schema), "\uFFFD"),
	}
	if t.Annotations != nil {
		if hints, err := json.Marshal(t.Annotations); err == nil {
			d.Hints = strings.ToValidUTF8(string(hints), "\uFFFD")
		}
	}
	return finished(d)
}

// noArguments is the schema of a tool that has none.
const noArguments = `{"type":"object"}`

// finished returns a definition with its digest; reason is why it is too large.
func finished(d *harnessv1.McpDefinition) (_ *harnessv1.McpDefinition, reason string) {
	if len(d.GetTool())+len(d.GetDescription())+len(d.GetSchema())+len(d.GetHints()) > maxDefinition {
		return nil, "its definition is larger than 256 KiB"
	}
	d.Digest = mcptool.Digest(d)
	return d, ""
}
