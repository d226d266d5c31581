package hookcaller_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

const (
	beforeTool = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	afterTool  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	agentStop  = harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP
	beforeStep = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	onPause    = harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE

	carryOn = harnessv1.HookAction_HOOK_ACTION_CONTINUE
	deny    = harnessv1.HookAction_HOOK_ACTION_DENY
)

var run = runlog.Run{Namespace: "n", ID: "r"}

// handler is a HookService that is a function.
type handler func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error)

type service struct {
	harnessv1.UnimplementedHookServiceServer
	answer handler
}

func (s service) HandleHook(ctx context.Context, r *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	v, err := s.answer(ctx, r.GetHook())
	if err != nil {
		return nil, err
	}
	return &harnessv1.HandleHookResponse{Verdict: v}, nil
}

// serve serves gRPC on a loopback port for the test and returns HOST:PORT.
func serve(t testing.TB, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	return l.Addr().String()
}

func serveHooks(t testing.TB, answer handler) string {
	return serve(t, func(s *grpc.Server) { harnessv1.RegisterHookServiceServer(s, service{answer: answer}) })
}

// unusedAddress returns an address at which no server listens.
func unusedAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// bed is a caller with its run log.
type bed struct {
	*hookcaller.Caller
	t    testing.TB
	log  runlog.Log
	info hookcaller.RunInfo
}

func newBed(t testing.TB, host harnessv1.ToolHostServiceClient) *bed {
	t.Helper()
	pool, log := &remote.Pool{}, openLog(t)
	t.Cleanup(pool.Close)
	return &bed{
		Caller: hookcaller.New(hookcaller.Config{ToolHost: host, Log: log, Remote: pool}), t: t, log: log,
		info: hookcaller.RunInfo{Workspace: t.TempDir(), FirstSequence: 7},
	}
}

// openLog opens a log on an embedded server, both closed with the test.
func openLog(t testing.TB) runlog.Log {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	log, err := e.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

// request is a call of a hook of a topic under a key.
func request(topic harnessv1.HookTopic, key string) *harnessv1.HookRequest {
	return &harnessv1.HookRequest{
		Namespace: run.Namespace, RunId: run.ID, HookId: "h", Topic: topic, IdempotencyKey: key, TurnNumber: 3,
		Payload: `{"arguments":{"command":"rm -rf /"},"tool":"run_command"}`,
	}
}

func compile(t testing.TB, hooks ...*harnessv1.Hook) *hook.Set {
	t.Helper()
	s, err := hook.Compile(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client is a connection to a gRPC server.
func client(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
