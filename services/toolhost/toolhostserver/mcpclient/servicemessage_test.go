package mcpclient

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestRequestThatIsTooLargeIsNoResult: a service with the same bound refuses a request in the words
// with which this side refuses a result.
func TestRequestThatIsTooLargeIsNoResult(t *testing.T) {
	err := status.Error(codes.ResourceExhausted, "grpc: received message larger than max (17000000 vs. 16777216)")
	for size, want := range map[int]error{0: errTooLarge, maxMessage: nil} {
		request := &harnessv1.ToolServiceExecuteRequest{Arguments: strings.Repeat("x", size)}
		if got := unreadable(request, err); !errors.Is(got, want) {
			t.Errorf("arguments of %d bytes: %v, want %v", size, got, want)
		}
	}
}
