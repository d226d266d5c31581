package toolhost

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Closing is the message of a request that comes while the host drains or closes.
const Closing = "the tool host is closing; send the request again"

// ErrHostCloses is the cause of the end of a call whose tool host closes. A service that remembers
// keys receives no Cancel then: the next host asks for its result.
var ErrHostCloses = errors.New("the tool host is closing")

// NotStarted returns the error for a call that did not begin: the caller may send it again,
// also to another host.
func NotStarted(message string, cause error) error {
	e := fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED, message)
	e.Err = cause
	return e
}

// Unavailable returns the error for a request that may be sent again.
func Unavailable(message string, cause error) error {
	e := fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, message)
	e.Err = cause
	return e
}
