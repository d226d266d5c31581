package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFramesAreIdentified(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"id":1,"method":"x"}}`:           "7",
		`{"result":{"a":[{"id":3},"}"]},"id" : "a\"b" ,"jsonrpc":"2.0"}`:    `"a\"b"`,
		"\t{ \"\\u0069d\":12 , \"result\" : null }\r\n":                     "12",
		`{"id":7,"error":{"code":-1}}`:                                      "7",
		`{"id":7,"method":"ping","result":{}}`:                              "",
		`{"method":"notifications/progress","params":{"id":7,"result":{}}}`: "",
		`{"id":7}`:               "",
		`{"result":{}}`:          "",
		`{"result":{},"id":7`:    "",
		`{"result":{},"id":7]]}`: "",
		`{"result":{},"id":"` + strings.Repeat("x", 2*maxScalar) + `"}`: "",
	} {
		for _, size := range []int{1, 3, len(text)} {
			f := &frame{}
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				_ = f.feed(rest[:min(size, len(rest))])
			}
			var response struct{ ID json.RawMessage }
			if data := f.substitute(); data != nil {
				if err := json.Unmarshal(data, &response); err != nil {
					t.Fatalf("%s: %s: %v", text, data, err)
				}
			}
			if got := string(response.ID); got != want && !f.invalid || f.invalid && want != "" {
				t.Errorf("%s by %d: id %s, want %s", text, size, got, want)
			}
		}
	}
	for _, text := range []string{"x", "[{}]", `"a"`, "{}{}", "\x00\x00"} {
		if err := (&frame{}).feed([]byte(text)); !errors.Is(err, errNoMessage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func letters(n int64) io.Reader { return io.LimitReader(same('A'), n) }

type same byte

func (s same) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}

// TestMessagesAreBounded: each that is too large is replaced or left out, in bounded memory, and those around it
// are unchanged.
func TestMessagesAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	if testing.Short() {
		t.Skip("reads 24 times the largest message")
	}
	checkBounds(t, 24*maxMessage)
}

func TestSystemMessagesOfGigabytesAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	checkBounds(t, 1<<30)
	if _, err := io.ReadAll(newMessages(io.MultiReader(strings.NewReader(`{"a":"`), letters(3<<30)))); !errors.Is(err, errEndless) {
		t.Errorf("an endless message: %v", err)
	}
}

// checkBounds reads messages that are too large, and others between them.
func checkBounds(t *testing.T, size int64) {
	t.Helper()
	const before, after = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":3,"result":{}}` + "\n"
	for what, want := range map[string]string{
		`{"id":2,"result":"`:  string(substitute(json.RawMessage("2"), false)) + "\n",
		`{"id":2,"error":"`:   string(substitute(json.RawMessage("2"), true)) + "\n",
		`{"method":"x","a":"`: "",
	} {
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		got, err := io.ReadAll(newMessages(io.MultiReader(strings.NewReader(before+what), letters(size), strings.NewReader("\"}\n"+after))))
		runtime.ReadMemStats(&end)
		if err != nil || string(got) != before+want+after {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if grown := end.TotalAlloc - start.TotalAlloc; grown > 16*maxMessage {
			t.Errorf("a message of %d MiB took %d MiB", size>>20, grown>>20)
		}
	}
	const open, end = `{"jsonrpc":"2.0","method":"`, "\"}\n"
	largest := []byte(open + strings.Repeat("A", maxMessage-len(open)-len(end)) + end)
	if got, err := io.ReadAll(newMessages(bytes.NewReader(largest))); err != nil || !bytes.Equal(got, largest) {
		t.Errorf("a message of %d bytes: %d, %v", len(largest), len(got), err)
	}
	if _, err := io.ReadAll(newMessages(same(0))); !errors.Is(err, errNoMessage) {
		t.Errorf("zeros: %v", err)
	}
	cut := io.MultiReader(strings.NewReader(`{"id":2,"result":"`), letters(maxMessage), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, err := io.ReadAll(newMessages(cut)); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) > 0 {
		t.Errorf("a message that is cut: %q, %v", got, err)
	}
}
