package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// describes is a tool host that names itself.
type describes struct {
	harnessv1.UnimplementedToolHostServiceServer
	name string
}

func (d describes) DescribeHost(context.Context, *harnessv1.DescribeHostRequest) (*harnessv1.DescribeHostResponse, error) {
	return &harnessv1.DescribeHostResponse{LedgerId: d.name}, nil
}

// listening serves a tool host, or nothing, as a process with an instance.
func listening(t *testing.T, instance string, host bool) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newRoleServer(slog.New(slog.DiscardHandler), instance, nil)
	if host {
		harnessv1.RegisterToolHostServiceServer(s.grpc, describes{name: instance})
	}
	s.serve(l)
	t.Cleanup(func() { s.grpc.Stop(); <-s.served })
	return l.Addr().String()
}

// TestOnlyTheAddressedProcessAnswers: an address that another process has by now, of any
// kind, is given up for the one that the role is found at next.
func TestOnlyTheAddressedProcessAnswers(t *testing.T) {
	mine, others, another := listening(t, "mine", true), listening(t, "others", true), listening(t, "another", false)
	for name, address := range map[string]string{"a tool host of others": others, "no tool host": another} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			conn, err := dialRole("toolhost", func(context.Context, string) (*harnessv1.Presence, error) {
				switch asked.Add(1) {
				case 1:
					return nil, errors.New("no process is there yet")
				case 2:
					return &harnessv1.Presence{Instance: "mine", Address: address}, nil // unchanged
				}
				return &harnessv1.Presence{Instance: "mine", Address: mine}, nil
			}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			refused := 0
			for {
				r, err := harnessv1.NewToolHostServiceClient(conn).DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
				if err == nil {
					if r.GetLedgerId() != "mine" {
						t.Errorf("answered by %s", r.GetLedgerId())
					}
					break
				}
				if status.Code(err) != codes.Unavailable {
					t.Fatal(err)
				}
				refused++
			}
			if refused == 0 {
				t.Error("no client was refused")
			}
		})
	}
}

// TestCallWithoutTheRightTokenIsNotStarted: a call that a process refuses because of the
// token may be sent elsewhere, and is no error of the request.
func TestCallWithoutTheRightTokenIsNotStarted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newRoleServer(slog.New(slog.DiscardHandler), "mine", nil, roledoor.New(roledoor.Config{Tokens: []string{"right"}}).ServerOptions()...)
	harnessv1.RegisterToolHostServiceServer(s.grpc, describes{name: "mine"})
	s.serve(l)
	t.Cleanup(func() { s.grpc.Stop(); <-s.served })
	for token, reason := range map[string]string{"right": "", "wrong": "NOT_STARTED", "": "NOT_STARTED"} {
		locate := func(context.Context, string) (*harnessv1.Presence, error) {
			return &harnessv1.Presence{Instance: "mine", Address: l.Addr().String()}, nil
		}
		conn, err := dialRole("toolhost", locate, nil, func(*harnessv1.Presence) string { return token })
		if err != nil {
			t.Fatal(err)
		}
		_, err = harnessv1.NewToolHostServiceClient(conn).DescribeHost(t.Context(), &harnessv1.DescribeHostRequest{})
		if fault.ReasonOf(err) != reason || (err == nil) != (reason == "") {
			t.Errorf("%q: %v", token, err)
		}
		_ = conn.Close()
	}
}

// TestAdviceNamesRolesThatExist: a tool host that is not there is named by its ledger, and what
// is to be started is a role.
func TestAdviceNamesRolesThatExist(t *testing.T) {
	m := startMember(t, Config{NATS: bus(t), MeshKey: MeshKey{File: filepath.Join(t.TempDir(), MeshKeyFile)}, Roles: []string{workflow.Compaction}})
	for _, c := range []struct{ role, want string }{
		{workflow.ToolHost, "no process with the role toolhost is ready: start `harness serve --roles toolhost`"},
		{"toolhost.8af80123456a-0123456789abcdef", "no tool host with the ledger 8af80123456a-0123456789abcdef is ready, and none that replaces it: start `harness serve --roles toolhost` with its --data"},
		{"toolhost.0123456789abcdef0123456789abcdef", "start `harness serve --roles toolhost`"},
	} {
		_, err := m.locate(t.Context(), c.role)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "toolhost.") {
			t.Errorf("%s: %v", c.role, err)
		}
	}
}
