package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDeliveryOverHTTP: a call is not sent if its server cannot be dialled, and lost if the
// connection breaks after it was written; the notification of a cancellation changes nothing.
func TestDeliveryOverHTTP(t *testing.T) {
	reset := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer reset.Close()
	away := httptest.NewServer(nil)
	away.Close()
	for address, want := range map[string]outcome{reset.URL: lost, away.URL: notSent} {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		home, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		r := &requests{next: transport, home: home}
		bounded, cancel := context.WithCancel(t.Context())
		ctx, way := withDelivery(bounded)
		post := func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := r.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("there is a response")
			}
			return err
		}
		err = post(ctx)
		if got := way.outcome(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
		cancel()
		way.status.Store(http.StatusOK)
		_ = post(context.WithoutCancel(ctx))
		if way.status.Load() != http.StatusOK {
			t.Error("the notification of the cancellation counts as the call")
		}
	}
}

// TestDeliveryOverPipes: a call is not sent if its pipe is closed, by the server or by the host.
func TestDeliveryOverPipes(t *testing.T) {
	for name, end := range map[string]func(read, write *os.File) error{
		"the server has died":         func(read, _ *os.File) error { return read.Close() },
		"the host has closed its end": func(_, write *os.File) error { return write.Close() },
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pipes{&mcp.IOTransport{Reader: io.NopCloser(strings.NewReader("")), Writer: write}, write}.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, err := jsonrpc.MakeID("1")
		if err != nil {
			t.Fatal(err)
		}
		if err := end(read, write); err != nil {
			t.Fatal(err)
		}
		ctx, way := withDelivery(t.Context())
		err = conn.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call", Params: []byte("{}")})
		if got := way.outcome(err); err == nil || got != notSent {
			t.Errorf("%s: %v: got %v", name, err, got)
		}
		_, _ = conn.Close(), read.Close()
	}
}

func TestOutcome(t *testing.T) {
	refused, plain := &jsonrpc.Error{Code: -32602, Message: "bad"}, errors.New("broken")
	for name, c := range map[string]struct {
		sent, answered bool
		status         int32
		err            error
		want           outcome
	}{
		"not sent":                         {false, false, 0, plain, notSent},
		"no response":                      {true, false, 0, plain, lost},
		"no response, an error of the SDK": {true, false, 0, &jsonrpc.Error{Code: rejectedCode}, lost},
		"a proxy":                          {true, false, 502, &jsonrpc.Error{Code: rejectedCode}, lost},
		"an error in a response":           {true, false, 200, refused, answered},
		"a broken response":                {true, false, 200, plain, lost},
		"the result is elsewhere":          {true, false, 303, plain, lost},
		"refused":                          {true, false, 400, refused, answered},
		"forbidden":                        {true, false, 403, plain, answered},
		"the session is gone":              {true, false, 404, mcp.ErrSessionMissing, gone},
		"over pipes":                       {true, true, 0, refused, answered},
	} {
		d := &delivery{ctx: t.Context()}
		d.sent.Store(c.sent)
		d.answered.Store(c.answered)
		d.status.Store(c.status)
		if got := d.outcome(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
