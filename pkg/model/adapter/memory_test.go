package adapter_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestRefusedAnswerCostsItsBytes: of a service that sends a GB, in one line, in one event, in one body or
// as text, about as much is read as is permitted, and all that is allocated meanwhile is at most 64 MiB. Not parallel: it
// counts the allocations of the process.
func TestRefusedAnswerCostsItsBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("reads answers of 16 MB and more")
	}
	open := map[string]func(adapter.Endpoint) (model.Provider, error){
		"chat":      func(e adapter.Endpoint) (model.Provider, error) { return openai.New(openai.Config{Endpoint: e}) },
		"messages":  func(e adapter.Endpoint) (model.Provider, error) { return anthropic.New(anthropic.Config{Endpoint: e}) },
		"responses": func(e adapter.Endpoint) (model.Provider, error) { return responses.New(responses.Config{Endpoint: e}) },
	}
	text := strings.Repeat("x", 8000)
	for name, c := range wires {
		begin := "data: " + c.begin + "\n\n"
		cases := map[string][2]string{
			"a line": {begin + "data: ", text}, "an event": {begin, "data: " + text + "\n"}, "a body": {`{"a":"`, text},
		}
		if name != "chat" { // its reader makes more garbage, of which no more than this is alive
			cases["a text"] = [2]string{begin, "data: " + fmt.Sprintf(c.pieces[0], text) + "\n\n"}
		}
		for kind, sends := range cases {
			t.Run(name+" "+kind, func(t *testing.T) {
				var sent atomic.Int64
				chunk := []byte(sends[1])
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, err := w.Write([]byte(sends[0]))
					for err == nil && sent.Load() < 1<<30 {
						_, err = w.Write(chunk)
						sent.Add(int64(len(chunk)))
					}
				}))
				defer s.Close()
				p, err := open[name](adapter.Endpoint{BaseURL: s.URL})
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err = p.Complete(t.Context(), modeltest.Conversation(true), nil)
				runtime.ReadMemStats(&after)
				if !errors.Is(err, wire.ErrTooLarge) {
					t.Errorf("error %v", err)
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 || sent.Load() > 64<<20 {
					t.Errorf("%d MiB are allocated for an answer of which %d MiB were sent", n>>20, sent.Load()>>20)
				}
			})
		}
	}
}
