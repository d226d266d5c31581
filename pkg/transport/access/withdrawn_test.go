package access_test

import (
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// TestMessagesOfAWithdrawnTokenAreRefused: the next message on an open stream, once the line of its token is removed or
// changed. Messages of other tokens are received.
func TestMessagesOfAWithdrawnTokenAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, lines string
		want        codes.Code
	}{
		{"removed", anotherForAll + "\n", codes.Unauthenticated},
		{"with fewer rights", forAll + " may=commands\n" + anotherForAll + "\n", codes.Unavailable},
		{"the line of another", forAll + "\n" + anotherForAll + " may=none\n", codes.OK},
	} {
		file, path, _ := tokens(t, forAll+"\n"+anotherForAll+"\n")
		received := make(chan error, 1)
		conn := dial(t, append(access.NewGuard(file).ServerOptions(), reports(received))...)
		stream, err := harnessv1.NewGatewayServiceClient(conn).Run(withToken(t, "Bearer "+forAll))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: "r"}}}); err != nil {
			t.Fatal(err)
		}
		if err := <-received; err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Approval{Approval: &harnessv1.Approval{CallId: "c"}}}); err != nil {
			t.Fatal(err)
		}
		if err := <-received; status.Code(err) != c.want {
			t.Errorf("%s: the message is received with %v, want %v", c.name, err, c.want)
		}
	}
}

// reports sends the error of each message that a handler receives, nil for none.
func reports(received chan<- error) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, reporter{stream, received})
	})
}

type reporter struct {
	grpc.ServerStream
	received chan<- error
}

func (r reporter) RecvMsg(m any) error {
	err := r.ServerStream.RecvMsg(m)
	r.received <- err
	return err
}
