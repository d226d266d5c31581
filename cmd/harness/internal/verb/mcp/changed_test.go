package mcp_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// TestServersThatARunHasChangedDoNotStart: a file that waits by the records of --data is refused by each verb that starts
// its servers, also over MCP.
func TestServersThatARunHasChangedDoNotStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	servers := harnesstest.Write(t, filepath.Join(t.TempDir(), "servers.json"), `{"mcpServers": {"evil": {"command": "false"}}}`)
	if err := trust.Open(filepath.Join(data, "tools")).Changed(servers, trust.Of([]byte("{}"))); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": t.TempDir()}
	for _, verb := range []string{"list", "serve"} {
		args := []string{"mcp", verb, "--data", data, "--mcp", servers}
		if verb == "serve" {
			args = append(args, "--foreground", "--model", "openai:x")
		}
		if got := harnesstest.Call(t, env, "", args...); got.Code == 0 || !strings.Contains(got.Err, "a run has changed it") {
			t.Errorf("%s: %+v", verb, got)
		}
	}

	// What serve reads is registered.
	own := harnesstest.Write(t, filepath.Join(t.TempDir(), "own.json"), `{"mcpServers": {"own": {"command": "true"}}}`)
	script := harnesstest.Write(t, filepath.Join(t.TempDir(), "script.yaml"), "turns: [{text: hello}]\n")
	got := harnesstest.Call(t, env, "", "mcp", "serve", "--data", data, "--mcp", own, "--foreground", "--model", "script:"+script)
	if _, named := trust.Open(filepath.Join(data, "tools")).Named(own); !named {
		t.Errorf("the file is not registered: %+v", got)
	}
}
