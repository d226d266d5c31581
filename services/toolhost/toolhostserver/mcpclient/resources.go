package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// The tools by which an agent reads the resources of a server. They are tools of the server
// like others: rules, hints and approvals hold for them.
var (
	listResources = ownTool("list_resources", "Lists the resources of the server, which read_resource reads.",
		`{"type":"object","properties":{"cursor":{"type":"string","description":"Where the list goes on, as the last call returned it."}},"additionalProperties":false}`)
	readResource = ownTool("read_resource", "Reads a resource of the server.",
		`{"type":"object","properties":{"uri":{"type":"string","minLength":1,"description":"Its URI, as list_resources has it."}},"required":["uri"],"additionalProperties":false}`)
)

// maxResources bounds how many resources are listed at a time.
const maxResources = 200

func ownTool(name, description, schema string) *harnessv1.McpDefinition {
	d := &harnessv1.McpDefinition{Tool: name, Description: description, Schema: schema, Hints: `{"readOnlyHint":true,"idempotentHint":true}`}
	d.Digest = mcptool.Digest(d)
	return d
}

// readsResources reports whether a definition is one of the two tools for resources.
func readsResources(d *harnessv1.McpDefinition) bool {
	return d.GetDigest() == listResources.GetDigest() || d.GetDigest() == readResource.GetDigest()
}

// resourceTools returns the tools for the resources of a server: none if it has no resource, or
// has own tools of their names.
func resourceTools(ctx context.Context, client *mcp.ClientSession, has func(tool string) bool) (tools []*harnessv1.McpDefinition, leftOut []*harnessv1.McpLeftOut) {
	if c := client.InitializeResult().Capabilities; c == nil || c.Resources == nil {
		return nil, nil
	}
	leaveOut := func(d *harnessv1.McpDefinition, reason string) {
		leftOut = append(leftOut, &harnessv1.McpLeftOut{Tool: d.GetTool(), Reason: reason})
	}
	some, err := hasResources(ctx, client)
	if err != nil {
		leaveOut(listResources, "the server does not list its resources: "+content.Line(content.Clean(err.Error()), 200))
		return nil, leftOut
	}
	if !some {
		return nil, nil
	}
	for _, d := range []*harnessv1.McpDefinition{listResources, readResource} {
		if has(d.GetTool()) {
			leaveOut(d, "the server has a tool of this name")
			continue
		}
		tools = append(tools, d)
	}
	return tools, leftOut
}

func hasResources(ctx context.Context, client *mcp.ClientSession) (bool, error) {
	page, err := client.ListResources(ctx, &mcp.ListResourcesParams{})
	if err != nil || len(page.Resources) > 0 {
		return err == nil, err
	}
	templates, err := client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{})
	return err == nil && len(templates.ResourceTemplates) > 0, nil //nolint:nilerr // a server need not have templates
}

// callResources carries out a call of one of the two tools.
func (c *connection) callResources(ctx context.Context, call Call, d *harnessv1.McpDefinition, arguments string) (Result, error) {
	var in struct {
		Cursor string `json:"cursor"`
		URI    string `json:"uri"`
	}
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return failed("The arguments were refused: %s.", err), nil
	}
	if d.GetTool() == readResource.GetTool() {
		return c.read(ctx, call, in.URI)
	}
	text, err := c.resources(ctx, in.Cursor)
	return Result{Text: origin(call.GetServer()) + text}, err
}

// resources returns a page of the list of resources; the first has the templates too.
func (c *connection) resources(ctx context.Context, cursor string) (string, error) {
	var b strings.Builder
	line := func(uri, name, kind, description string) {
		fmt.Fprintf(&b, "%s  %s", content.Line(content.Clean(uri), 1000), content.Line(content.Clean(name), 100))
		if kind != "" {
			fmt.Fprintf(&b, " (%s)", content.Line(content.Clean(kind), 60))
		}
		if description != "" {
			fmt.Fprintf(&b, ": %s", content.Line(content.Clean(description), 200))
		}
		b.WriteString("\n")
	}
	page, err := c.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
	if err != nil {
		return "", err
	}
	for i, r := range slices.DeleteFunc(page.Resources, func(r *mcp.Resource) bool { return r == nil }) {
		if i == maxResources {
			fmt.Fprintf(&b, "[%d more are left out.]\n", len(page.Resources)-i)
			break
		}
		line(r.URI, r.Name, r.MIMEType, r.Description)
	}
	if cursor == "" {
		if templates, err := c.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{}); err == nil {
			for i, t := range templates.ResourceTemplates {
				if t != nil && i < maxResources {
					line(t.URITemplate, t.Name, t.MIMEType, t.Description)
				}
			}
		}
	}
	if page.NextCursor != "" {
		fmt.Fprintf(&b, "There are more: call again with the cursor %q.\n", content.Cut(content.Clean(page.NextCursor), 1000))
	}
	if b.Len() == 0 {
		return "There are no resources.", nil
	}
	return strings.TrimRight(strings.ToValidUTF8(b.String(), "\uFFFD"), "\n"), nil
}

// read returns the content of a resource for the model.
func (c *connection) read(ctx context.Context, call Call, uri string) (Result, error) {
	answer, err := c.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return Result{}, err
	}
	if len(answer.InputRequests) > 0 {
		return failed("%sThe server asks for input that cannot be given here.", origin(call.GetServer())), nil
	}
	var r Result
	var b strings.Builder
	for _, part := range answer.Contents {
		r.resource(&b, part)
	}
	r.finish(call, b.String(), "The resource is empty.")
	return r, nil
}
