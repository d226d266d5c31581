package remote_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

// TestReasonOfAServerIsOneBoundedLine: the model and people read it.
func TestReasonOfAServerIsOneBoundedLine(t *testing.T) {
	if got := remote.Reason(status.Error(codes.Internal, "no\x1b]0;t\x07\u009b2J\u202e\nindeed")); got != "no ]0;t 2J indeed" {
		t.Errorf("%q", got)
	}
	if got := remote.Reason(status.Error(codes.Internal, strings.Repeat("x", 1<<20))); len(got) > 1000 {
		t.Errorf("%d bytes", len(got))
	}
}
