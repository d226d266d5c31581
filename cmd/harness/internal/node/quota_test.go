package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestSilentConnectionsLeaveForCalls: a gateway all of whose places are taken by connections that
// have sent a request line, or the preface, and no token, takes the calls of a token; connections
// of such calls stay while more silent ones come.
func TestSilentConnectionsLeaveForCalls(t *testing.T) {
	g := startGateway(t, Config{Confined: func() bool { return true }, PeerConnections: 4})
	address, key := g.Addr(workflow.Gateway), g.key(t)
	silent := func() {
		for i := range 6 {
			speak(t, address, []string{"GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[i%2])
		}
	}
	silent()
	dials := make(chan string, 100)
	dialer := func(ctx context.Context, to string) (net.Conn, error) {
		dials <- to
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer),
		grpc.WithPerRPCCredentials(access.Bearer(key, true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1, DialContext: func(ctx context.Context, _, to string) (net.Conn, error) { return dialer(ctx, to) },
	}}
	t.Cleanup(client.CloseIdleConnections)
	call := func() {
		t.Helper()
		if _, err := harnessv1.NewGatewayServiceClient(conn).ListRuns(t.Context(), &harnessv1.ListRunsRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response.Status, err)
		}
	}
	for range 3 {
		call()
		silent()
		if _, err := harnessv1.NewGatewayServiceClient(dialPlain(t, address, "no-token-of-this-gateway")).ListRuns(t.Context(), &harnessv1.ListRunsRequest{}, grpc.WaitForReady(true)); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a call without a valid token: %v", err)
		}
	}
	call()
	if len(dials) != 2 {
		t.Errorf("two clients have connected %d times", len(dials))
	}
}

// TestQuotasCountWhatIsStored: a token with a run at work may not start another one, until it has
// ended; and one whose run has stored more than it may, none until that is deleted.
func TestQuotasCountWhatIsStored(t *testing.T) {
	dir, workspace := t.TempDir(), t.TempDir()
	script, gate := filepath.Join(dir, "waits.yaml"), filepath.Join(workspace, "gate")
	if err := os.WriteFile(script, []byte("turns:\n- calls: [{name: run_command, arguments: {command: read -r line < gate}}]\n- calls: [{name: work_complete, arguments: {summary: Done.}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const oneRun, noBytes = "token-with-one-run-at-work", "token-without-any-bytes"
	g := startGateway(t, Config{
		Roles: []string{workflow.AllRoles}, Confined: func() bool { return true }, Scripts: dir,
		Tokens: tokensOf(t, oneRun+" * name=one runs=1\n"+noBytes+" * name=none bytes=1\n"),
	})
	start := func(token string) (string, error) {
		started, err := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), token)).StartRun(t.Context(), &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Wait."), Workspace: workspace,
			Agent: &harnessv1.AgentSpec{Model: "script:" + script, Tools: []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}}},
		}})
		return started.GetRunId(), err
	}
	for token, quota := range map[string]string{oneRun: "runs=", noBytes: "bytes="} {
		run, err := start(token)
		if err != nil {
			t.Fatal(err)
		}
		end := func() {
			if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil { // waits for the command
				t.Fatal(err)
			}
			stream := followRun(t, g.gateway, run).stream
			for {
				if _, err := stream.Recv(); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		if token == noBytes {
			end()
		}
		if _, err := start(token); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), quota) {
			t.Errorf("%s: %v", quota, err)
		}
		if token == oneRun {
			end()
		} else if _, err := g.gateway.DeleteRun(t.Context(), &harnessv1.DeleteRunRequest{RunId: run}); err != nil {
			t.Fatal(err)
		}
		again, err := start(token)
		if err != nil {
			t.Fatalf("%s, after the run has ended or is deleted: %v", quota, err)
		}
		run = again
		end()
	}
}
