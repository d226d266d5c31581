package memory

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// service is a model service: it answers each request after a pause, so that the requests
// of many runs are in work at the same time.
type service struct {
	*httptest.Server
	// answer writes the content of the answer after n earlier ones of the conversation.
	answer func(n int, delta func(choice map[string]any))
	bytes  atomic.Int64 // of the largest request
}

// piece is the text of an event, in bytes.
const piece = 4 << 10

// pause is how long a model thinks.
const pause = 2 * time.Second

func newService(tb testing.TB, answer func(n int, delta func(choice map[string]any))) *service {
	tb.Helper()
	s := &service{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.complete))
	tb.Cleanup(s.Close)
	return s
}

// complete counts the answers in a request, which it does not keep.
func (s *service) complete(w http.ResponseWriter, r *http.Request) {
	var size counter
	body := bufio.NewReader(io.TeeReader(r.Body, &size))
	answers := 0
	decoder := json.NewDecoder(body)
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		if token == "assistant" {
			answers++
		}
	}
	s.bytes.Store(max(s.bytes.Load(), int64(size)))
	select {
	case <-r.Context().Done():
		return
	case <-time.After(pause):
	}
	delta := func(choice map[string]any) {
		if r.Context().Err() != nil {
			return // the worker has ended the stream
		}
		choice["index"] = 0
		data, err := json.Marshal(map[string]any{"model": "m", "choices": []any{choice}})
		if err == nil {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		}
	}
	s.answer(answers, delta)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// counter counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// writes returns answers of which the first n have a text of size bytes in pieces, and a
// call; the next one completes the work.
func writes(n, size int) func(int, func(map[string]any)) {
	return func(answered int, delta func(map[string]any)) {
		call, arguments := "list_directory", fmt.Sprintf(`{"path":".","limit":%d}`, 100+answered)
		if answered >= n {
			call, arguments = "work_complete", `{"summary":"done"}`
		} else {
			for at := range size / piece {
				delta(map[string]any{"delta": map[string]any{"content": text(answered*size/piece+at, piece)}})
			}
		}
		delta(map[string]any{"finish_reason": "tool_calls", "delta": map[string]any{"tool_calls": []any{
			map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", answered), "function": map[string]any{"name": call, "arguments": arguments}},
		}}})
	}
}

// text returns size bytes of words that are not the same everywhere.
func text(seed, size int) string {
	var b strings.Builder
	for b.Len() < size {
		seed = seed*1103515245 + 12345
		fmt.Fprintf(&b, "word%d and more, ", seed>>16&0xffff)
	}
	return b.String()[:size]
}
