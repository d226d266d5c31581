package gatewayhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxBody bounds the body of a request, in bytes: more than all texts of one request with
// every character escaped, and more than the largest file in base64.
const maxBody = 32 << 20

// idempotencyKey is the header that sets the request id.
const idempotencyKey = "Idempotency-Key"

// bodyOf reads the body of a request, which is a JSON object. If it is optional, an
// empty body is an empty object.
func bodyOf(w http.ResponseWriter, r *http.Request, optional bool) (json.RawMessage, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE,
			fmt.Sprintf("the body is larger than %d bytes", maxBody), "limit", fmt.Sprint(maxBody))
	case err != nil:
		return nil, fault.New(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, "the body is incomplete: send it again")
	}
	if optional && len(bytes.TrimSpace(data)) == 0 {
		return json.RawMessage("{}"), nil
	}
	kind := r.Header.Get("Content-Type")
	if name, _, err := mime.ParseMediaType(kind); err != nil || name != "application/json" {
		return nil, &mediaError{http.StatusUnsupportedMediaType, "Content-Type", fmt.Sprintf("%q: expected application/json", clip(kind))}
	}
	return data, checkJSON(data)
}

// checkJSON refuses a body that is not a JSON object.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return fault.Invalid("body", "must be UTF-8")
	}
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line, column := position(data, syntax.Offset)
		return fault.Invalid("body", "%d:%d: %v", line, column, syntax)
	case err != nil:
		return fault.Invalid("body", "%v", err)
	case kindOf(data) != '{':
		return fault.Invalid("body", "expected an object: {…}")
	}
	return nil
}

// position returns the line and the column, in bytes from 1, of the last of offset
// bytes.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// kindOf returns the first character of a JSON value; for a number, a digit or a sign.
func kindOf(value []byte) byte {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// object visits the fields of a valid JSON object, each once, in order.
func object(value json.RawMessage, path string, visit func(name string, value json.RawMessage) error) error {
	if kindOf(value) != '{' {
		return fault.Invalid(orBody(path), "expected an object: {…}")
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	_, _ = dec.Token() // the brace; what follows is valid
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			return fault.Invalid(join(path, clip(name)), "duplicate field")
		}
		seen[name] = true
		var field json.RawMessage
		if err := dec.Decode(&field); err != nil {
			return err
		}
		if err := visit(name, field); err != nil {
			return err
		}
	}
	return nil
}

// array visits the items of a valid JSON array.
func array(value json.RawMessage, path string, visit func(i int, item json.RawMessage) error) error {
	if kindOf(value) != '[' {
		return fault.Invalid(path, "expected a list: […]")
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	_, _ = dec.Token()
	for i := 0; dec.More(); i++ {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return err
		}
		if err := visit(i, item); err != nil {
			return err
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}

// requestID returns the request id: the header's, or the body's.
func requestID(r *http.Request, inBody string) (string, error) {
	header := r.Header.Values(idempotencyKey)
	switch {
	case len(header) == 0:
		return inBody, nil
	case len(header) > 1:
		return "", fault.Invalid(idempotencyKey, "duplicate header")
	case inBody != "" && inBody != header[0]:
		return "", fault.Invalid("request_id", "differs from the header %s: set one of them", idempotencyKey)
	}
	return header[0], nil
}
