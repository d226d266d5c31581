package fault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestStatus: what a caller sees of an error, and whether the cause must be logged.
func TestStatus(t *testing.T) {
	gone := fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND, "no such run", "run_id", "r1", "namespace")
	secret := errors.New("password hunter2")
	for _, c := range []struct {
		name   string
		err    error
		code   codes.Code
		text   string
		reason string
		known  bool
	}{
		{"nothing", nil, codes.OK, "", "", true},
		{"a fault", gone, codes.NotFound, "no such run", "RUN_NOT_FOUND", true},
		{"a fault, wrapped", fmt.Errorf("get: %w", gone), codes.NotFound, "no such run", "RUN_NOT_FOUND", true},
		{"a fault with a cause", &fault.Error{Code: codes.Unavailable, Reason: harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE, Message: "try again", Err: secret},
			codes.Unavailable, "try again", "LOG_UNAVAILABLE", true},
		{"a field", fault.Invalid("run_id", "%q is no name", "a b"), codes.InvalidArgument, `run_id: "a b" is no name`, "INVALID_FIELD", true},
		{"cancelled", fmt.Errorf("read: %w", context.Canceled), codes.Canceled, "cancelled", "", true},
		{"too late", context.DeadlineExceeded, codes.DeadlineExceeded, "deadline exceeded", "", true},
		{"a status", status.Error(codes.Aborted, "again"), codes.Aborted, "again", "", true},
		{"anything else", secret, codes.Internal, "internal error; the server's log has the cause", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, known := fault.Status(c.err)
			if st.Code() != c.code || st.Message() != c.text || known != c.known || fault.ReasonOf(st.Err()) != c.reason {
				t.Errorf("%s %q %q, known %v", st.Code(), st.Message(), fault.ReasonOf(st.Err()), known)
			}
			if strings.Contains(fmt.Sprint(st.Proto()), "hunter2") {
				t.Error("the cause has left the server")
			}
		})
	}
	if got := fault.ReasonOf(errors.New("no status")); got != "" {
		t.Errorf("reason %q", got)
	}
}

func TestCause(t *testing.T) {
	cause := errors.New("cause")
	err := &fault.Error{Code: codes.Unavailable, Message: "try again", Err: cause}
	if !errors.Is(err, cause) || err.Error() != "try again: cause" {
		t.Errorf("%v", err)
	}
	if got := fault.Invalid("f", "no").Error(); got != "f: no" {
		t.Errorf("%q", got)
	}
}

// TestReasonsTravel without their prefix.
func TestReasonsTravel(t *testing.T) {
	for n, name := range harnessv1.ErrorReason_name {
		st, _ := fault.Status(fault.New(codes.FailedPrecondition, harnessv1.ErrorReason(n), "m"))
		if want := strings.TrimPrefix(name, "ERROR_REASON_"); fault.ReasonOf(st.Err()) != want {
			t.Errorf("%s travels as %q", name, fault.ReasonOf(st.Err()))
		}
	}
}

// health fails each call as its service name demands.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) fail(how string) error {
	switch how {
	case "panic":
		panic("hunter2")
	case "unknown":
		return errors.New("hunter2")
	case "fault":
		return fault.Invalid("service", "is wrong")
	}
	return nil
}

func (h health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, h.fail(r.GetService())
}

func (h health) Watch(r *grpc_health_v1.HealthCheckRequest, _ grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	if err := h.fail(r.GetService()); err != nil {
		return err
	}
	return fault.Invalid("service", "is over")
}

// TestServer: errors and panics of handlers become statuses.
func TestServer(t *testing.T) {
	var log bytes.Buffer
	server := grpc.NewServer(fault.ServerOptions(slog.New(slog.NewTextHandler(&log, nil)))...)
	grpc_health_v1.RegisterHealthServer(server, health{})
	pipe := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	client := grpc_health_v1.NewHealthClient(conn)
	for how, want := range map[string]codes.Code{"": codes.OK, "fault": codes.InvalidArgument, "unknown": codes.Internal, "panic": codes.Internal} {
		_, unary := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: how})
		if status.Code(unary) != want || strings.Contains(fmt.Sprint(unary), "hunter2") {
			t.Errorf("%q: %v", how, unary)
		}
		stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: how})
		if err != nil {
			t.Fatal(err)
		}
		if want == codes.OK {
			want = codes.InvalidArgument
		}
		if _, err := stream.Recv(); status.Code(err) != want || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%q, streamed: %v", how, err)
		}
	}
	_ = conn.Close()
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 4 || strings.Count(log.String(), "hunter2") < 4 {
		t.Errorf("%d errors in the log:\n%s", n, log.String())
	}
}
