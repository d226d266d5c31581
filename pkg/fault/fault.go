// Package fault defines the errors that a caller can act on. An Error has a gRPC code,
// which decides what an executor or a client does, a documented reason, and a message
// that names what to do next. A FieldError names an invalid field and becomes an Error.
//
// Errors are translated to gRPC statuses once, at the edge of a server (Unary, Stream).
// The package also finds the nearest known name for "did you mean" hints (Nearest).
package fault

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// domain is the domain of every ErrorInfo of this program.
const domain = "harnessmesh"

// Error is an error that a caller can act on.
type Error struct {
	// Code decides what the caller does.
	Code codes.Code
	// Reason is the precise cause.
	Reason harnessv1.ErrorReason
	// Message is one line for people that includes what to do.
	Message string
	// Metadata holds pairs of key and value, such as "field", "goal".
	Metadata []string
	// Err is the cause. It is logged by the server and never sent.
	Err error
}

// Error returns the message and, if there is one, the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error; metadata is pairs of key and value.
func New(code codes.Code, reason harnessv1.ErrorReason, message string, metadata ...string) *Error {
	return &Error{Code: code, Reason: reason, Message: message, Metadata: metadata}
}

// metadata returns the pairs of Metadata as a map.
func (e *Error) metadata() map[string]string {
	pairs := make(map[string]string, len(e.Metadata)/2)
	for i := 0; i+1 < len(e.Metadata); i += 2 {
		pairs[e.Metadata[i]] = e.Metadata[i+1]
	}
	return pairs
}

// Status converts an error to a gRPC status. An error that is not an Error becomes
// INTERNAL with a fixed text. known is then false, and the caller logs the cause.
func Status(err error) (st *status.Status, known bool) {
	var e *Error
	switch {
	case err == nil:
		return nil, true
	case errors.As(err, &e):
		st := status.New(e.Code, e.Message)
		info := &errdetails.ErrorInfo{
			Reason:   ReasonName(e.Reason),
			Domain:   domain,
			Metadata: e.metadata(),
		}
		if with, err := st.WithDetails(info); err == nil {
			st = with
		}
		return st, true
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "cancelled"), true
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "deadline exceeded"), true
	}
	if st, ok := status.FromError(err); ok {
		return st, true
	}
	return status.New(codes.Internal, "internal error; the server's log has the cause"), false
}

// ReasonName returns a reason without its prefix, as it is sent.
func ReasonName(r harnessv1.ErrorReason) string {
	return strings.TrimPrefix(r.String(), "ERROR_REASON_")
}

// ReasonOf returns the reason of a gRPC error, or the empty string.
func ReasonOf(err error) string {
	return infoOf(status.Convert(err)).GetReason()
}

// Metadata returns a value of the metadata of an error, as New sets it; empty for none.
func Metadata(err error, key string) string {
	st, _ := Status(err)
	return infoOf(st).GetMetadata()[key]
}
