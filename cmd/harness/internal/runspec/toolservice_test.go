package runspec

import (
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestParseToolServices(t *testing.T) {
	t.Parallel()
	got, err := ParseToolServices([]string{"billing=127.0.0.1:9000", "pay=pay.example:443,trust=hints,timeout=30s"})
	if err != nil || len(got) != 2 || got[0].GetGrpc() != "127.0.0.1:9000" || got[0].GetTrust() != "" ||
		got[1].GetName() != "pay" || got[1].GetTrust() != "hints" || got[1].GetTimeout().AsDuration() != 30*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	for values, want := range map[string]string{
		"billing": "expected NAME=HOST:PORT", "=x:1": "invalid name", "mcp=x:1": "another name", "a=x": "HOST:PORT", "a=": "HOST:PORT",
		"a=x:1,trust=all": "unknown trust", "a=x:1,timeout=0s": "above 0", "a=x:1,size=3": "unknown setting", "a=x:1 a=x:2": "duplicate name",
	} {
		if _, err := ParseToolServices(strings.Fields(values)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--tool-service") {
			t.Errorf("%s: %v, want %s", values, err, want)
		}
	}
}

func TestToolServicesOfFlags(t *testing.T) {
	t.Parallel()
	flags := &Flags{ToolService: []string{"a=x:1,trust=hints"}}
	file := agentfile.New()
	if err := flags.addToolServices(file.Agent); err != nil || file.Agent.GetMcp()[0].GetTrust() != "hints" {
		t.Errorf("%v, %v", file.Agent, err)
	}
	file.Agent.Mcp = []*harnessv1.McpServer{{Name: "a", Command: "c"}}
	if err := flags.addToolServices(file.Agent); err == nil || !strings.Contains(err.Error(), "leave out one of them") {
		t.Errorf("%v", err)
	}
}
