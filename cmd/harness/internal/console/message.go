package console

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// unreachable begins the message about a gateway that does not answer.
const unreachable = "the gateway cannot be reached; is harness serve running? "

// Message returns the text of an error for people; that about a gateway that does not answer names
// the address of --server.
func (a *Console) Message(err error) string {
	text := Message(err)
	why, found := strings.CutPrefix(text, unreachable)
	if !found || a.Server == "" {
		return text
	}
	why = strings.TrimSuffix(why[strings.LastIndex(why, ": ")+1:], `"`)
	return "--server " + a.Server + ": no gateway answers there (" + strings.TrimSpace(why) + "): start one with harness serve, or correct the address"
}

// Message returns the text of an error for people: of a gRPC error its message.
func Message(err error) string {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return err.Error()
	}
	st := carrier.GRPCStatus()
	text := strings.ReplaceAll(err.Error(), fmt.Sprintf("rpc error: code = %s desc = ", st.Code()), "")
	switch st.Code() {
	case codes.Unavailable:
		if fault.ReasonOf(err) != "" {
			return text // it answered and reports what it cannot reach
		}
		if why, refused := tlsfiles.Explain(text); refused {
			return "--server: " + why
		}
		return unreachable + text
	case codes.Unauthenticated:
		return text + " (--token-file)"
	case codes.Unimplemented:
		if strings.Contains(text, "unknown service") {
			return "this process does not serve a gateway: name one with --server, or its data directory with --data"
		}
		return "the gateway does not support this request; it may be older than this program: " + text
	}
	return text
}

// OneLine returns a text, of which a server may have written a part, in a form that is safe
// for a terminal.
func OneLine(text string) string { return content.OneLine(text) }

// NamedField replaces the field in an error by what sets it, by field.
func NamedField(err error, names map[string]string) error {
	text := Message(err)
	for field, name := range names {
		if rest, found := strings.CutPrefix(text, field+":"); found {
			return errors.New(name + ":" + rest)
		}
	}
	return err
}
