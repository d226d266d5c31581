package follow_test

import (
	"net"
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// proxy404 answers 404 at the address of a gateway that is away, as a proxy without a backend does. refused
// has a value once it has.
func (b *bed) proxy404() (refused chan struct{}, stop func()) {
	b.t.Helper()
	listener, err := net.Listen("tcp", b.address)
	b.must(err)
	refused = make(chan struct{}, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NotFound(w, r)
		select {
		case refused <- struct{}{}:
		default:
		}
	}), Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return refused, func() {
		_ = server.Close()
		<-served
	}
}

// TestFollowThroughANotFound of something between: it is retried after the gateway has answered, by this
// call or before it. Without that it is another server, which ends the call.
func TestFollowThroughANotFound(t *testing.T) {
	b := newBed(t)
	f := b.follow(follow.Config{})
	f.out.expect(t, `"1-1"`, 1)
	b.stop()
	refused, gone := b.proxy404()
	<-refused
	later, first := b.follow(follow.Config{Answered: true}), b.follow(follow.Config{})
	if err := first.end(t); status.Code(err) != codes.Unimplemented {
		t.Errorf("a server that is no gateway: %v", err)
	}
	later.notes.expect(t, "the gateway is unavailable; retrying", 1)
	gone()
	b.step("repair")
	b.step(runlog.End)
	b.start()
	for _, f := range []*watch{f, later} {
		b.must(f.end(t))
		f.check(t, 3)
	}
}
