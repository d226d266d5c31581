package egress

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// TestRequestsOfSOCKS and what is replied to those that cannot be served.
func TestRequestsOfSOCKS(t *testing.T) {
	for text, want := range map[string]struct {
		host  string
		port  uint16
		reply byte
	}{
		"\x05\x01\x00\x03\x0bexample.com\x01\xbb":                        {"example.com", 443, replySucceeded},
		"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50":                       {"127.0.0.1", 80, replySucceeded},
		"\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50": {"::1", 80, replySucceeded},
		"\x05\x02\x00\x03\x01a\x00\x50":                                  {reply: replyNoSuchCommand}, // BIND
		"\x05\x03\x00\x03\x01a\x00\x50":                                  {reply: replyNoSuchCommand}, // UDP
		"\x05\x01\x00\x03\x00\x00\x50":                                   {reply: replyNoSuchAddress},
		"\x05\x01\x00\x02\x00\x50":                                       {reply: replyNoSuchAddress},
		"\x04\x01\x00\x03\x01a\x00\x50":                                  {reply: replyGeneralFailure},
		"\x05\x01\x00\x03\x0bexample.com\x01":                            {reply: replyGeneralFailure},
		"":                                                               {reply: replyGeneralFailure},
	} {
		host, port, err := readRequest(strings.NewReader(text))
		var reply byte
		if err != nil {
			reply = replyTo(err)
		}
		if host != want.host || port != want.port || reply != want.reply {
			t.Errorf("%q: got %q, %d, %v", text, host, port, err)
		}
	}
}

// TestMethodsOfSOCKS: only clients that need no password are served.
func TestMethodsOfSOCKS(t *testing.T) {
	for text, want := range map[string]byte{"\x05\x01\x00": methodNone, "\x05\x03\x01\x02\x00": methodNone, "\x05\x01\x02": methodUnacceptable, "\x05\x00": methodUnacceptable} {
		if got, err := readGreeting(strings.NewReader(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\x05", "\x04\x01\x00", "\x05\x03\x00"} {
		if got, err := readGreeting(strings.NewReader(text)); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

// FuzzSOCKS: what is read is what was sent, nothing after it is taken, and no address passes
// as a name.
func FuzzSOCKS(f *testing.F) {
	for _, seed := range []string{"\x05\x01\x00\x03\x0bexample.com\x01\xbbrest", "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", "\x05\x01\x00\x04" + strings.Repeat("\xff", 18), "\x05\x01\x00\x03\x09127.0.0.1\x00\x50", "\x05\x01\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readGreeting(bytes.NewReader(data))
		r := bytes.NewReader(data)
		host, port, err := readRequest(r)
		if err != nil {
			if replyTo(err) == replySucceeded {
				t.Fatalf("%v is a success", err)
			}
			return
		}
		used := data[:len(data)-r.Len()]
		if len(used) < 7 || binary.BigEndian.Uint16(used[len(used)-2:]) != port {
			t.Fatalf("port %d of %q", port, used)
		}
		name, ok := sandbox.NormalName(host)
		if used[3] != kindName && ok {
			t.Fatalf("the address %q is the name %q", host, name)
		}
		if _, err := netip.ParseAddr(name); ok && err == nil {
			t.Fatalf("the address %q is a name", name)
		}
	})
}
