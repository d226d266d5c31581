package mcpclient

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Why the result of a call cannot be read. The call has run.
var (
	errTooLarge = fmt.Errorf("it has more than %d MiB. Ask for less at a time", maxMessage>>20)
	errNoText   = errors.New("it is not text in UTF-8")
)

// unreadable returns why the result of a call cannot be read, if that is how its stream ended;
// nil if not. A service whose library refuses to send a result reports it in words only.
func unreadable(request *harnessv1.ToolServiceExecuteRequest, err error) error {
	message := status.Convert(err).Message()
	has := func(text string) bool { return strings.Contains(message, text) }
	switch status.Code(err) {
	case codes.ResourceExhausted:
		received := has("larger than max") && has(fmt.Sprint(maxMessage)) && protobuf.Size(request) <= maxMessage // else it may be the request
		if received || has("trying to send message larger than max") || has("larger than configured writeMaxBytes") {
			return errTooLarge
		}
	case codes.Internal:
		if has(errNoText.Error()) || has("error while marshaling") && has("invalid UTF-8") {
			return errNoText
		}
	}
	return nil
}

// lenient is the codec of streams of calls. It replaces invalid bytes of an output, which is for
// people, and reports a result that is not text by errNoText.
type lenient struct{ encoding.CodecV2 }

func lenientCodec() encoding.CodecV2 { return lenient{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (l lenient) Unmarshal(data mem.BufferSlice, v any) error {
	err := l.CodecV2.Unmarshal(data, v)
	response, ok := v.(*harnessv1.ToolServiceExecuteResponse)
	if err == nil || !ok {
		return err
	}
	const output, result = 1, 2
	for rest := data.Materialize(); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		size := protowire.ConsumeFieldValue(number, kind, rest[max(n, 0):])
		if n < 0 || size < 0 {
			return err
		}
		value, _ := protowire.ConsumeBytes(rest[n : n+size])
		switch {
		case number == output && !utf8.Valid(value):
			protobuf.Reset(response)
			response.Value = &harnessv1.ToolServiceExecuteResponse_Output{Output: strings.ToValidUTF8(string(value), "\uFFFD")}
			err = nil
		case number == result:
			return errNoText
		}
		rest = rest[n+size:]
	}
	return err
}
