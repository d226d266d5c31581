package gateway

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestWithServices: a run has the services of the tool host's operator, those of a copied spec are
// removed, and the agent's own server keeps its name. Requests stay the same.
func TestWithServices(t *testing.T) {
	host := func(name string) *harnessv1.McpServer { return &harnessv1.McpServer{Name: name, Host: true} }
	own := &harnessv1.McpServer{Name: "pay", Grpc: "x:1"}
	for _, c := range []struct {
		has, services []*harnessv1.McpServer
		want          string
	}{
		{nil, nil, ""},
		{nil, []*harnessv1.McpServer{host("bill")}, "bill"},
		{[]*harnessv1.McpServer{own}, []*harnessv1.McpServer{host("bill"), host("pay")}, "pay bill"},
		{[]*harnessv1.McpServer{host("gone"), own}, []*harnessv1.McpServer{host("bill")}, "pay bill"},
		{[]*harnessv1.McpServer{host("gone")}, nil, ""},
	} {
		spec := &harnessv1.RunSpec{Goal: &harnessv1.Content{}}
		if c.has != nil {
			spec.Agent = &harnessv1.AgentSpec{Mcp: c.has}
		}
		before := proto.CloneOf(spec)
		with := WithServices(spec, c.services)
		var names []string
		for _, s := range with.GetAgent().GetMcp() {
			names = append(names, s.GetName())
		}
		if got := strings.Join(names, " "); got != c.want || !proto.Equal(spec, before) {
			t.Errorf("%v with %v has %s, want %s", before, c.services, got, c.want)
		}
		if run := (runlog.Run{Namespace: "n", ID: "r"}); spec.Agent != nil && !Same(run, spec, with) {
			t.Errorf("%v is another request than %v", with, spec)
		}
	}
}

func TestRulesNameToolsOfServices(t *testing.T) {
	for name, want := range map[string]bool{"billing__pay": true, "billing__*": true, "bill*": true, "mcp__billing__pay": false, "other__pay": false} {
		agent := &harnessv1.AgentSpec{Tools: []*harnessv1.ToolRule{{Name: name}}, Mcp: []*harnessv1.McpServer{{Name: "billing", Host: true}}}
		if err := CheckTools(agent, []string{"read_file"}); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
