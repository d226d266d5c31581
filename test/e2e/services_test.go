package e2e

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
)

// TestEveryRoleIsAService asks each role of a served mesh over gRPC, as a
// person or a test in any language would: health, reflection, and "what would
// you do with this state?".
func TestEveryRoleIsAService(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve := start(t, environment(), "serve", "--data", data, "--listen", "127.0.0.1:0")
	address := map[string]string{}
	eventually(t, "all roles", func() bool {
		serve.mu.Lock()
		defer serve.mu.Unlock()
		for _, line := range strings.Split(serve.stderr.String(), "\n") {
			if rest, ok := strings.CutPrefix(line, "ready role="); ok {
				role, at, _ := strings.Cut(rest, " addr=")
				address[role] = at
			}
		}
		return len(address) == 7
	})
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	conns := map[string]*grpc.ClientConn{}
	for role, at := range address {
		conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(data))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns[role] = conn
		if r, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%s: health %v, %v", role, r, err)
		}
		if names := services(ctx, t, conn); !strings.Contains(names, "harness.v1.") {
			t.Errorf("%s: reflection shows %s", role, names)
		}
	}

	silent := &harnessv1.StepInput{Namespace: "default", RunId: "asked", Step: &harnessv1.Step{
		Snapshot: &harnessv1.Snapshot{TurnCount: 3},
		Message:  &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 3, AgentDone: true}},
	}}
	decided, err := harnessv1.NewStopDecisionServiceClient(conns["stopdecision"]).Decide(ctx, &harnessv1.DecideRequest{Input: silent})
	if err != nil {
		t.Fatal(err)
	}
	outcome := decided.GetOutput().GetOutcome()
	if outcome.GetStep().GetTo() != "repair" || outcome.GetEvents()[0].GetStopRejected().GetKind() != "work_complete_not_called" {
		t.Errorf("a silent agent: %v", outcome)
	}
	if _, err := harnessv1.NewStopDecisionServiceClient(conns["stopdecision"]).Decide(ctx, &harnessv1.DecideRequest{}); err == nil {
		t.Error("an empty state is decided")
	}

	trigger := &harnessv1.StepInput{Namespace: "default", RunId: "asked", Step: &harnessv1.Step{
		Snapshot: &harnessv1.Snapshot{},
		Message:  &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START}},
	}}
	repaired, err := harnessv1.NewRepairServiceClient(conns["repair"]).Repair(ctx, &harnessv1.RepairRequest{Input: trigger})
	if err != nil || strings.Join(repaired.GetOutput().GetNeeds().GetKeys(), " ") != "inbox environment" {
		t.Errorf("repair needs %v, %v", repaired, err)
	}

	prepared, err := harnessv1.NewTurnServiceClient(conns["turn"]).Prepare(ctx, &harnessv1.PrepareRequest{
		Input: &harnessv1.StepInput{Namespace: "default", RunId: "asked", Step: &harnessv1.Step{Snapshot: &harnessv1.Snapshot{}}},
		Conversation: []*harnessv1.Message{
			{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: "hello"}}},
			{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "a", Name: "read_file"}}},
		},
	})
	// The two, a result for the call, and the guidance of the first turn.
	messages := prepared.GetRequest().GetMessages()
	if err != nil || len(messages) != 4 || len(prepared.GetRequest().GetTools()) != 13 || messages[3].GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE {
		t.Errorf("the model would be sent %v, %v", prepared, err)
	}
}

// services lists what a server says by reflection that it serves.
func services(ctx context.Context, t *testing.T, conn *grpc.ClientConn) string {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	return strings.Join(names, " ")
}
