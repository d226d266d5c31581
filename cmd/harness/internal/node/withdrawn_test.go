package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// withdrawal bounds how long a stream outlasts its token.
const withdrawal = 10 * time.Second

// watchLists opens a stream of all runs and reads up to the end of the stored ones.
func watchLists(t *testing.T, ctx context.Context, client harnessv1.GatewayServiceClient) harnessv1.GatewayService_WatchRunsClient {
	t.Helper()
	stream, err := client.WatchRuns(ctx, &harnessv1.WatchRunsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetCaughtUp() != nil {
			return stream
		}
	}
}

// watchHTTP opens the stream of all runs over HTTP and reads up to the end of the stored ones.
func watchHTTP(t *testing.T, ctx context.Context, g *gatewayNode, token string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Addr(workflow.Gateway)+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"caught_up"`) {
			return lines
		}
	}
	t.Fatalf("%s, %v", answer.Status, lines.Err())
	return nil
}

// TestStreamsEndWithTheirToken: within 10 s after its line is removed or changed, over gRPC
// and HTTP, and with the reason. Streams of other tokens continue.
func TestStreamsEndWithTheirToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const bounded = "token-that-is-bounded"
	write(nina + " name=nina\n" + otto + " name=otto\n" + bounded + " default\n")
	tokens, err := access.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, Config{Roles: []string{workflow.AllRoles}, Confined: func() bool { return true }, Tokens: tokens})
	client := func(token string) harnessv1.GatewayServiceClient {
		return harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), token))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := watchLists(t, ctx, client(nina))
	gone, narrowed, over := watchLists(t, ctx, client(otto)), watchLists(t, ctx, client(bounded)), watchHTTP(t, ctx, g, otto)
	late := time.AfterFunc(withdrawal, cancel)
	write(nina + " name=nina\n" + bounded + " another\n")
	if _, err := gone.Recv(); status.Code(err) != codes.Unauthenticated || fault.ReasonOf(err) != "TOKEN_UNKNOWN" || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("a removed line: %v", err)
	}
	if _, err := narrowed.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "another line") {
		t.Errorf("a changed line: %v", err)
	}
	var text strings.Builder
	for over.Scan() {
		text.WriteString(over.Text() + "\n")
	}
	if err := over.Err(); err != nil || !strings.Contains(text.String(), "stream.error") || !strings.Contains(text.String(), "TOKEN_UNKNOWN") {
		t.Errorf("over HTTP: %v, %s", err, &text)
	}
	if !late.Stop() {
		t.Fatal("the streams ended too late")
	}
	if _, err := client(nina).StartRun(ctx, &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{}}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	cancel()
	if _, err := other.Recv(); status.Code(err) != codes.Canceled && !errors.Is(err, io.EOF) {
		t.Errorf("another token's stream: %v", err)
	}
}
