package gatewayhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// problem is the error of an answer.
type problem struct {
	// Code is the gRPC code in capitals, such as INVALID_ARGUMENT.
	Code string `json:"code"`
	// Reason is a harness.v1.ErrorReason without its prefix; empty where none fits.
	Reason string `json:"reason"`
	// Message is one line for people that includes what to do.
	Message string `json:"message"`
	// Field is the path of the invalid field, parameter or header; empty if there is
	// none.
	Field string `json:"field"`
}

var errPanic = errors.New("panic") // sent as INTERNAL without a cause

// retryAfter is the wait before the same request may be retried, in seconds.
const retryAfter = "1"

// WriteError answers with an error: a *fault.Error, a gRPC status, or any other, which
// becomes INTERNAL with a fixed text. An answer that has started is unchanged.
func WriteError(w http.ResponseWriter, err error) {
	p, code := problemOf(err)
	switch wait := fault.Metadata(err, "retry_after"); {
	case code == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case code == http.StatusTooManyRequests && wait != "":
		w.Header().Set("Retry-After", wait)
	}
	writeProblem(w, code, p)
}

func writeProblem(w http.ResponseWriter, code int, p problem) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(p.json(), '\n')) // the client may have left
}

// json returns the body of an error answer.
func (p problem) json() []byte {
	body, _ := json.Marshal(map[string]problem{"error": p}) // strings only: it cannot fail
	return body
}

// problemOf returns an error as a client sees it, and its HTTP status.
func problemOf(err error) (problem, int) {
	var media *mediaError
	if errors.As(err, &media) {
		reason := fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD)
		return problem{codeName(codes.InvalidArgument), reason, media.Error(), media.header}, media.status
	}
	st, _ := fault.Status(err)
	p := problem{Code: codeName(st.Code()), Reason: fault.ReasonOf(st.Err()), Message: st.Message()}
	if p.Reason == "UNSPECIFIED" {
		p.Reason = ""
	}
	if e := fault.FieldOf(st.Err()); e != nil {
		p.Field = e.Field
	}
	p.Message, p.Field = ownNames(p.Message, p.Field)
	return p, httpStatus(st.Code(), p.Reason)
}

// mediaError is a header with an unsupported media type.
type mediaError struct {
	status       int
	header, text string
}

func (e *mediaError) Error() string { return e.header + ": " + e.text }

// codeName returns a code as google.rpc.Code spells it.
func codeName(c codes.Code) string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "UNKNOWN"
}

var codeNames = map[codes.Code]string{
	codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

// statusClientGone is nginx's status for a client that has left.
const statusClientGone = 499

// httpStatus returns the status that google.rpc.Code names for a code, as grpc-gateway
// does, with one exception: a request that is too large is 413, because clients retry a
// 429.
func httpStatus(c codes.Code, reason string) int {
	switch c {
	case codes.OK:
		return http.StatusOK
	case codes.Canceled:
		return statusClientGone
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.ResourceExhausted:
		if reason == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE) {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// httpNames maps fields of the gRPC messages to their names in HTTP, if they differ.
var httpNames = map[string]string{
	"user_message.content": "content",
	"approval.call_id":     "call_id",
	"approval.decision":    "decision",
	"approval.reason":      "reason",
	"tool_answer.call_id":  "call_id",
	"tool_answer.result":   "content",
	"mode_change.mode":     "mode",
	"model_change.model":   "model",
	"replan.reason":        "reason",
	"feedback.thumb":       "thumb",
	"statuses":             "status",
	"after_version":        "after",
}

// ownNames returns a field of a gRPC message, and the message that begins with it, as an
// HTTP client wrote it.
func ownNames(message, field string) (string, string) {
	own, ok := httpNames[field]
	if !ok {
		own = field
		for _, message := range []string{"spec.", "user_message.", "tool_answer."} {
			own = strings.TrimPrefix(own, message)
		}
	}
	if rest, found := strings.CutPrefix(message, field+":"); found && field != "" {
		return own + ":" + rest, own
	}
	// Errors without a field mention the workspace and the workflow.
	message = strings.ReplaceAll(message, "spec.workflow", "workflow")
	if rest, found := strings.CutPrefix(message, "spec.workspace:"); found {
		return "workspace:" + rest, "workspace"
	}
	return message, own
}

// clip shortens a quoted value.
func clip(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return text
}
