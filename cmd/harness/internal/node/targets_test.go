package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// hookServer is a HookService that lets every call of a tool continue.
type hookServer struct {
	harnessv1.UnimplementedHookServiceServer
}

func (hookServer) HandleHook(context.Context, *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	return &harnessv1.HandleHookResponse{Verdict: &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE}}, nil
}

// hooked starts a run with a hook that is a service.
func hooked(t *testing.T, client harnessv1.GatewayServiceClient, target string) error {
	t.Helper()
	_, err := client.StartRun(t.Context(), &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Finish."), Workspace: t.TempDir(),
		Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5", Hooks: []*harnessv1.Hook{{
			Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Grpc: target, OnFailure: harnessv1.HookFailure_HOOK_FAILURE_CLOSED,
		}}},
	}})
	return err
}

// tokensOf returns the tokens of a file.
func tokensOf(t *testing.T, text string) *access.Tokens {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TestTokensNameServicesOfTheOperator: a client with a token cannot make a worker connect to
// other addresses of its network. The user of the machine can, at the socket.
func TestTokensNameServicesOfTheOperator(t *testing.T) {
	const token = "token-for-all-namespaces"
	register := func(r grpc.ServiceRegistrar) { harnessv1.RegisterHookServiceServer(r, hookServer{}) }
	allowed, other := steptest.Serve(t, register), steptest.Serve(t, register)
	g := startGateway(t, Config{
		Roles: []string{workflow.AllRoles}, Confined: func() bool { return true }, Tokens: tokensOf(t, token+"\n"), AllowTargets: []string{allowed},
	})
	network := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), token))
	if err := hooked(t, network, allowed); err != nil {
		t.Errorf("a service of the operator: %v", err)
	}
	err := hooked(t, network, other)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "spec.agent.hooks[0].grpc: ") || !strings.Contains(err.Error(), strconv.Quote(other)+" is no service") {
		t.Errorf("another service: %v", err)
	}
	if err := hooked(t, harnessv1.NewGatewayServiceClient(dialPlain(t, g.socket(), g.key(t))), other); err != nil {
		t.Errorf("at the socket: %v", err)
	}
}
