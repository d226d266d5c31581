package reasoning

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

const (
	answers = 1000
	payload = 20 << 10
	rounds  = 10
)

func BenchmarkTurn1000(b *testing.B) {
	for b.Loop() {
		text := newRun(b, false)
		reasoning := newRun(b, true)
		text.turn(b) // reads the log and the blobs
		reasoning.turn(b)
		var spent [2]time.Duration
		for range rounds {
			spent[0] += processorTime(b, func() { text.turn(b) })
			spent[1] += processorTime(b, func() { reasoning.turn(b) })
		}
		if text.sent < answers*payload || reasoning.sent < answers*payload {
			b.Fatalf("the requests have %d and %d bytes", text.sent, reasoning.sent)
		}
		b.ReportMetric(float64(spent[0].Milliseconds())/rounds, "ms-text")
		b.ReportMetric(float64(spent[1].Milliseconds())/rounds, "ms-reasoning")
		b.ReportMetric(spent[1].Seconds()/spent[0].Seconds(), "reasoning/text")
	}
}

// run is a run of 1,000 turns whose next turns are measured.
type run struct {
	*steptest.Bed
	state *harnessv1.Snapshot
	sent  int64 // bytes of the newest request
}

// newRun stores a run whose answers have 20 KB of reasoning, or of text.
func newRun(b *testing.B, reasoning bool) *run {
	b.Helper()
	r := &run{Bed: steptest.New(b)}
	const answer = `{"type":"message","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.sent, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, answer)
	}))
	b.Cleanup(service.Close)
	provider, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: service.URL, HTTPClient: service.Client()}})
	if err != nil {
		b.Fatal(err)
	}
	server := turnserver.New(turnserver.Config{
		Log: r.Log, ToolHost: steptest.ToolHost(b, nil),
		Open: func(string) (model.Provider, string, error) { return provider, "m", nil },
	})
	r.state = &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 1, MaxTurns: 9000,
		Model: "anthropic:m", Workflow: workflow.Default(), FirstSequence: 1, RunningSince: timestamppb.Now(), ToldTurn: 9000,
		Config: runstate.Resolve(&harnessv1.LoopConfig{
			Model:    &harnessv1.ModelConfig{Streaming: proto.Bool(false)},
			Guidance: &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)},
		}, 0),
	}
	prepared, err := server.Prepare(r.Context(), &harnessv1.PrepareRequest{Input: &harnessv1.StepInput{
		Namespace: r.Run.Namespace, RunId: r.Run.ID, Step: &harnessv1.Step{Snapshot: r.state},
	}})
	if err != nil {
		b.Fatal(err)
	}
	r.fill(b, "anthropic "+service.URL+"/v1/messages", prepared.GetRequest().GetTools(), reasoning)
	r.Start(server.Run)
	return r
}

// fill stores the conversation.
func (r *run) fill(b *testing.B, endpoint string, tools []*harnessv1.ToolSpec, reasoning bool) {
	b.Helper()
	var messages []*harnessv1.Message
	store := func(m *harnessv1.Message) {
		m.Id = uint64(len(messages)) + 1
		messages = append(messages, m)
		r.state.MessageCount = m.GetId()
		r.Put(&harnessv1.Step{From: workflow.Turn, To: workflow.StopDecision, Snapshot: r.state}, m)
	}
	store(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Find the number.")})
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, payload)
	for range answers {
		for i := range letters {
			letters[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
		}
		m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Look.")}
		if reasoning {
			m.Parts = []*harnessv1.Part{
				{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{}}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{
					Blob: r.blob(b, fmt.Sprintf(`{"type":"thinking","thinking":"","signature":"%s"}`, letters)),
				}}},
				{Kind: &harnessv1.Part_Text{Text: uint64(len("Look."))}},
			}
			m.Origin = &harnessv1.Origin{Wire: "messages", Endpoint: endpoint, Model: "m", RequestDigest: opaque.Digest(messages, tools)}
		} else {
			m.Content = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: r.blob(b, string(letters))}}
		}
		store(m)
		store(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline(strings.Repeat("Go on. ", 20))})
	}
}

func (r *run) blob(b *testing.B, text string) *harnessv1.BlobRef {
	b.Helper()
	ref, err := r.Log.PutBlob(r.Context(), r.Run, []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}
}

// turn performs one turn. The next one begins with the same conversation and one message
// more.
func (r *run) turn(b *testing.B) {
	b.Helper()
	s := proto.CloneOf(r.state)
	r.state.MessageCount++
	s.MessageCount = r.state.GetMessageCount()
	r.Put(&harnessv1.Step{
		From: workflow.Compaction, To: workflow.Turn, Snapshot: s,
		Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}},
	}, &harnessv1.Message{Id: s.GetMessageCount(), Role: harnessv1.Role_ROLE_USER, Content: content.Inline("More.")})
	for {
		rec := r.Next()
		r.state.MessageCount += uint64(len(rec.GetAppended()))
		if rec.GetStep() != nil {
			if e := rec.GetStep().GetTurnComplete().GetError(); e != nil {
				b.Fatal(e)
			}
			return
		}
	}
}

// processorTime returns the processor time that the process spends on f.
func processorTime(b *testing.B, f func()) time.Duration {
	b.Helper()
	before := used(b)
	f()
	return used(b) - before
}

func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
