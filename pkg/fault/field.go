package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// FieldError is an invalid field of a request, a spec or a file: the field,
// the mistake, and its place within the value. [errors.As] also finds it as
// an *[Error] with INVALID_ARGUMENT, INVALID_FIELD and the metadata field, and
// line and column if they are known.
type FieldError struct {
	// Field is the path of the field, such as hooks[3].cel; empty for the value
	// that was checked itself.
	Field string
	// Message is the problem and what to do.
	Message string
	// Line and Column are the place within the field's value, counted from 1,
	// columns in characters. Both are 0 if the whole value is meant.
	Line, Column int
}

// Invalid returns a FieldError about the whole value of a field.
func Invalid(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Error returns the field, the place within it and the message on one line.
func (e *FieldError) Error() string {
	text := e.Message
	if e.Line > 0 {
		text = e.place() + text
	}
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	return text
}

// place is the part of the text of an error that names line and column.
func (e *FieldError) place() string {
	return fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
}

// As sets target to the same error as an *Error, for [errors.As].
func (e *FieldError) As(target any) bool {
	coded, ok := target.(**Error)
	if !ok {
		return false
	}
	*coded = New(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD, e.Error(), "field", e.Field)
	if e.Line > 0 {
		(*coded).Metadata = append((*coded).Metadata, "line", strconv.Itoa(e.Line), "column", strconv.Itoa(e.Column))
	}
	return true
}

// In returns the error of a field below path: a FieldError keeps its place and
// gets the longer path. The text of any other error is the message about path
// itself. In(path, nil) is nil.
func In(path string, err error) error {
	if err == nil {
		return nil
	}
	var below *FieldError
	if !errors.As(err, &below) {
		return Invalid(path, "%s", err)
	}
	whole := *below
	whole.Field = join(path, below.Field)
	return &whole
}

// join returns the path of a field below another one.
func join(path, field string) string {
	switch {
	case path == "":
		return field
	case field == "", strings.HasPrefix(field, "["):
		return path + field
	}
	return path + "." + field
}

// FieldOf returns the field that an error names, whether the error comes from this
// process or, as a status, from another one. It is nil if the error names none.
func FieldOf(err error) *FieldError {
	var (
		field   *FieldError
		coded   *Error
		carrier interface{ GRPCStatus() *status.Status }
		message string
		info    map[string]string
	)
	switch {
	case errors.As(err, &field):
		return field
	case errors.As(err, &coded):
		message, info = coded.Message, coded.metadata()
	case errors.As(err, &carrier):
		message, info = carrier.GRPCStatus().Message(), infoOf(carrier.GRPCStatus()).GetMetadata()
	}
	if info["field"] == "" {
		return nil
	}
	field = &FieldError{Field: info["field"]}
	field.Message = strings.TrimPrefix(message, field.Field+": ")
	line, notLine := strconv.Atoi(info["line"])
	column, notColumn := strconv.Atoi(info["column"])
	if notLine == nil && notColumn == nil {
		field.Line, field.Column = line, column
		field.Message = strings.TrimPrefix(field.Message, field.place())
	}
	return field
}

// infoOf returns the ErrorInfo of this domain in a status, nil if it has none.
func infoOf(st *status.Status) *errdetails.ErrorInfo {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
			return info
		}
	}
	return nil
}
