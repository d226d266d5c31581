package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
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
			}, nil)
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
