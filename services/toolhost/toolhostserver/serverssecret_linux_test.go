package toolhostserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestValuesOfVariablesAreInNoRecord: neither in the message of a server that cannot be used, nor
// in a definition, a result or the log.
func TestValuesOfVariablesAreInNoRecord(t *testing.T) {
	const secret = "s3cr3t+value/1"
	t.Setenv("SERVER_SECRET", secret)
	var log bytes.Buffer
	h := newHost(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer h.endServers()
	leaks := func(text string) bool {
		return strings.Contains(text, "s3cr3t") || strings.Contains(log.String(), "s3cr3t")
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	text := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "headers"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return text("%v", r.Extra.Header), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "split"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return text("s3cr3t\r+value/1"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "described", Description: "Use the key " + secret}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return text(""), nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	defer web.CloseClientConnections()
	for _, c := range []*harnessv1.McpServer{
		{Name: "address", Url: "http://127.0.0.1:1/mcp?key=${SERVER_SECRET}"},
		{Name: "path", Url: "http://127.0.0.1:1/${SERVER_SECRET}/mcp"},
		{Name: "output", Command: "sh", Args: []string{"-c", "echo broken: $KEY >&2; exit 3"}, Env: map[string]string{"KEY": "${SERVER_SECRET}"}},
		{Name: "argument", Command: "sh", Args: []string{"-c", "echo broken: $0 >&2; exit 3", "--key=${SERVER_SECRET}"}},
	} {
		if d := h.described(c)[0]; d.GetMessage() == "" || leaks(d.GetMessage()) {
			t.Errorf("%s: %s, log %s", c.GetName(), d.GetMessage(), log.String())
		}
	}
	echo := &harnessv1.McpServer{Name: "echo", Url: web.URL, Headers: map[string]string{"Authorization": "Bearer ${SERVER_SECRET}", "X-Where": "${SERVER_SECRET}"}}
	d := h.described(echo)[0]
	if len(d.GetTools()) != 2 || leaks(d.String()) || len(d.GetLeftOut()) != 1 {
		t.Errorf("%v", d)
	}
	for _, tool := range []string{"headers", "split"} {
		if r := h.execute(h.serverCall(echo, tool, "{}")); r.GetIsError() || !strings.Contains(r.GetResult(), "[credential]") || leaks(r.GetResult()) {
			t.Errorf("%s: %v", tool, r)
		}
	}
}
