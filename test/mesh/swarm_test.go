package mesh

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// swarmOf gives a run a swarm of two specialists and an aggregator, and a task with n sources.
// The specialists named in fails end unaccepted.
func swarmOf(n int, fails string) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		for _, name := range []string{"east", "west", "merge"} {
			script := strings.ReplaceAll("turns:\n  - {text: \"Found by NAME.\", calls: [{name: work_complete, arguments: {summary: looked}}]}\n", "NAME", name)
			limit := uint32(8)
			if strings.Contains(fails, name) {
				script, limit = "turns:\n  - {calls: [{name: read_file, arguments: {path: a.txt}}]}\n", 1
			}
			s.Agent.Agents = append(s.Agent.Agents, &harnessv1.SubAgent{
				Name: name, Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true), MaxTurns: &limit,
				Model: "script:" + scriptFile(fmt.Sprint("swarm-", name, limit), script),
			})
		}
		s.Agent.Swarm = &harnessv1.Swarm{Specialists: []string{"east", "west"}, Aggregator: "merge"}
		s.Task = &harnessv1.Task{Kind: "synthesis"}
		for i := range n {
			s.Task.Sources = append(s.Task.Sources, &harnessv1.Source{Id: fmt.Sprint("s", i), Title: fmt.Sprint("Source ", i)})
		}
	}
}

// TestSwarm: specialists and an aggregator work before the first turn of a run whose token entitles to
// it and whose task has enough sources; without one that succeeds the run works alone.
func TestSwarm(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{"gateway"}})
	m.Start("gateway", meshtest.Args("--tokens", m.Write("tokens", "token-that-is-entitled * entitlements=has_synthesis_swarm\ntoken-that-is-not-entitled *\n")))
	m.AwaitReady("gateway")
	conn, err := grpc.NewClient(m.Gateway(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := harnessv1.NewGatewayServiceClient(conn)
	for _, c := range []struct {
		id, token, fails string
		sources          int
		want             string // the events, then what the first turn reads
	}{
		{"works", "token-that-is-entitled", "", 5, "5/2 east west; 2 true; Found by merge."},
		{"four", "token-that-is-entitled", "", 4, ""},
		{"unentitled", "token-that-is-not-entitled", "", 5, ""},
		{"one-fails", "token-that-is-entitled", "west", 5, "5/2 east west; 1 true; Found by merge."},
		{"all-fail", "token-that-is-entitled", "east west", 5, "5/2 east west; 0 false"},
	} {
		s := scenario{name: "swarm", script: "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n", edit: swarmOf(c.sources, c.fails)}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.token)
		request := &harnessv1.StartRunRequest{RunId: c.id, RequestId: c.id, Spec: s.spec(s.file(t), newWorkspace(t))}
		if _, err := client.StartRun(ctx, request); err != nil {
			t.Fatal(err)
		}
		entries := m.Ended(runlog.Run{Namespace: "default", ID: c.id}, 0)
		var got []string
		for _, e := range events(entries) {
			if a := e.GetSwarmActivated(); a != nil {
				got = append(got, fmt.Sprintf("%d/%d %s", a.GetSourceCount(), a.GetSpecialistCount(), strings.Join(a.GetSpecialists(), " ")))
			}
			if done := e.GetSwarmCompleted(); done != nil {
				got = append(got, fmt.Sprint(done.GetSpecialistsSucceeded(), done.GetAggregatorSucceeded()))
			}
			if e.GetStepStart() != nil {
				break
			}
		}
		conversation := texts(entries, "")
		for _, text := range conversation {
			if strings.Contains(text, "Found by merge.") {
				got = append(got, "Found by merge.")
			}
		}
		last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
		if strings.Join(got, "; ") != c.want || !last.GetAccepted() {
			t.Errorf("%s: got %q, want %q, and it ended %v", c.id, strings.Join(got, "; "), c.want, last.GetStopReason())
		}
		children := last.GetChildren()
		if (len(children) == 0) != (c.want == "") || c.fails == "east west" && len(children) != 2 {
			t.Errorf("%s has %d children", c.id, len(children))
		}
		if c.id == "works" && len(children) == 3 {
			goal := strings.Join(texts(m.Ended(runlog.Run{Namespace: "default", ID: children[2].GetRunId()}, 0), ""), "\n")
			for _, part := range []string{"- s4: Source 4", "## Result of east\n\nFound by east.", "## Result of west\n\nFound by west."} {
				if !strings.Contains(goal, part) {
					t.Errorf("%q is not in what the aggregator is given: %q", part, goal)
				}
			}
		}
	}
	// No field of a request replaces the entitlement of a token.
	s := scenario{name: "swarm", edit: swarmOf(5, "")}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer token-that-is-not-entitled")
	if _, err := client.StartRun(ctx, &harnessv1.StartRunRequest{
		RunId: "claims", RequestId: "claims", Spec: s.spec("x.yaml", newWorkspace(t)), Entitlements: []string{"has_synthesis_swarm"},
	}); status.Code(err) != codes.PermissionDenied && status.Code(err) != codes.InvalidArgument {
		t.Errorf("a request that names its entitlements: %v", err)
	}
}
