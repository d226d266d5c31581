package inferenceserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// customService is a custom InferenceService that answers with replies in order, the last
// one again and again.
type customService struct {
	harnessv1.UnimplementedInferenceServiceServer

	mu       sync.Mutex
	requests []*harnessv1.InferRequest
	replies  []func(context.Context) (*harnessv1.JobResult, error)
}

func (s *customService) Infer(ctx context.Context, req *harnessv1.InferRequest) (*harnessv1.InferResponse, error) {
	s.mu.Lock()
	reply := s.replies[min(len(s.requests), len(s.replies)-1)]
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	result, err := reply(ctx)
	return &harnessv1.InferResponse{Result: result}, err
}

func (s *customService) calls() []*harnessv1.InferRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// serve serves s and returns the reference of its model.
func (s *customService) serve(t *testing.T) (ref string) {
	t.Helper()
	return "grpc:" + steptest.Serve(t, func(r grpc.ServiceRegistrar) { harnessv1.RegisterInferenceServiceServer(r, s) })
}

func returns(result *harnessv1.JobResult) func(context.Context) (*harnessv1.JobResult, error) {
	return func(context.Context) (*harnessv1.JobResult, error) { return result, nil }
}

func fails(code codes.Code, text string) func(context.Context) (*harnessv1.JobResult, error) {
	return func(context.Context) (*harnessv1.JobResult, error) { return nil, status.Error(code, text) }
}

// TestCustomServicesGetAllContents: texts and media are inline, and what only a provider
// can read is left out.
func TestCustomServicesGetAllContents(t *testing.T) {
	b := newBed(t)
	s := &customService{replies: []func(context.Context) (*harnessv1.JobResult, error){
		returns(&harnessv1.JobResult{Key: "other", Text: "Short.", Usage: &harnessv1.Usage{InputTokens: 5}, Model: "mine", FinishReason: "stop"}),
	}}
	b.work(nil)
	request := b.request()
	picture, secret := b.Blob("picture").GetBlob(), b.Blob(`"signature"`).GetBlob()
	request.Messages = append(request.Messages,
		&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("See."), Parts: []*harnessv1.Part{
			{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Blob: picture, Width: 4}}},
		}},
		&harnessv1.Message{Id: 4, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "f", Arguments: b.Blob(`{"a":1}`)}}, Parts: []*harnessv1.Part{
			{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: b.Blob("I think.")}}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{Blob: secret}}},
			{Kind: &harnessv1.Part_Call{}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`"signature"`)}}},
		}, Origin: &harnessv1.Origin{Wire: "messages"}},
		&harnessv1.Message{Id: 5, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c", Content: b.Blob("The result.")},
	)
	ref := s.serve(t)
	job := b.jobOf("k1", request, func(j *harnessv1.Job) { j.Model, j.MaxOutputTokens = ref, 99 })
	b.create(job)
	got := b.result("k1")
	if got.GetText() != "Short." || got.GetKey() != "k1" || got.GetUsage().GetInputTokens() != 5 || got.GetModel() != "mine" || got.GetTries() != 1 {
		t.Errorf("got %v", got)
	}
	calls := s.calls()
	if len(calls) != 1 || !proto.Equal(calls[0].GetJob(), job) {
		t.Fatalf("calls %v", calls)
	}
	text := calls[0].GetRequest().String()
	for _, want := range []string{"The long story", `{\"a\":1}`, "The result.", `data:"picture"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, secret := range []string{"signature", "I think.", "origin", "blob:"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s in %s", secret, text)
		}
	}
}

func TestCustomServicesThatFail(t *testing.T) {
	away := fails(codes.Unavailable, "later")
	for name, c := range map[string]struct {
		replies []func(context.Context) (*harnessv1.JobResult, error)
		timeout time.Duration
		calls   int // -1: any number
		text    string
		fails   string
	}{
		"away":          {[]func(context.Context) (*harnessv1.JobResult, error){away}, 0, 3, "", "later (after 3 tries)"},
		"away once":     {[]func(context.Context) (*harnessv1.JobResult, error){away, returns(&harnessv1.JobResult{Text: "Now."})}, 0, 2, "Now.", ""},
		"refuses":       {[]func(context.Context) (*harnessv1.JobResult, error){fails(codes.InvalidArgument, "no\nway")}, 0, 1, "", "no way"},
		"another":       {[]func(context.Context) (*harnessv1.JobResult, error){fails(codes.Unimplemented, "")}, 0, 1, "", "does not serve harness.v1.InferenceService"},
		"no result":     {[]func(context.Context) (*harnessv1.JobResult, error){returns(nil)}, 0, 3, "", "has no result"},
		"an error":      {[]func(context.Context) (*harnessv1.JobResult, error){returns(&harnessv1.JobResult{Error: "my\nbad", Tries: 4})}, 0, 1, "", "my bad"},
		"nothing":       {[]func(context.Context) (*harnessv1.JobResult, error){returns(&harnessv1.JobResult{})}, 0, 1, "", "no text"},
		"says too much": {[]func(context.Context) (*harnessv1.JobResult, error){returns(&harnessv1.JobResult{Text: strings.Repeat("x", 600<<10)})}, 0, 1, "", "too many"},
		// A service knows the deadline, and ends the call a little before the worker does.
		"ends early": {[]func(context.Context) (*harnessv1.JobResult, error){fails(codes.Canceled, "deadline")}, 90 * time.Millisecond, -1, "", "no response within 90ms"},
		"hangs": {[]func(context.Context) (*harnessv1.JobResult, error){func(ctx context.Context) (*harnessv1.JobResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, 300 * time.Millisecond, -1, "", "no response within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			s := &customService{replies: c.replies}
			ref := s.serve(t)
			b.work(nil)
			b.create(b.job("k1", func(j *harnessv1.Job) {
				if j.Model = ref; c.timeout > 0 {
					j.Timeout = durationpb.New(c.timeout)
				}
			}))
			got := b.result("k1")
			if got.GetText() != c.text || !strings.Contains(got.GetError(), c.fails) || (got.GetError() != "") != (c.fails != "") || c.calls >= 0 && len(s.calls()) != c.calls {
				t.Errorf("got %v after %d calls", got, len(s.calls()))
			}
			if strings.Contains(got.GetError(), "\n") || int(got.GetTries()) < c.calls {
				t.Errorf("got %v", got)
			}
			b.idle()
		})
	}
}

func TestAddressesOfCustomServices(t *testing.T) {
	b := newBed(t)
	b.work(nil)
	b.create(b.job("k1", func(j *harnessv1.Job) { j.Model = "grpc:nowhere" }))
	b.wrong(b.result("k1"), `model grpc:nowhere: "nowhere" is not HOST:PORT`)
	b.create(b.job("k2", func(j *harnessv1.Job) { j.Model, j.MaxTries = "grpc:127.0.0.1:1", 1 }))
	b.wrong(b.result("k2"), "connection refused")
}

// TestInferStoresNothing: a call over gRPC is made as a job's is, and leaves the log
// alone.
func TestInferStoresNothing(t *testing.T) {
	b := newBed(t, said("The port is 8080."), modeltest.Reply{Status: 400, ErrorMessage: "no"})
	client := b.client()
	req := &harnessv1.InferRequest{
		Job:     &harnessv1.Job{Namespace: b.Run.Namespace, RunId: b.Run.ID, FirstSequence: b.first, Key: "k1", Model: "openai:test-model"},
		Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Sum up.")}}},
	}
	got, err := client.Infer(b.Context(), req)
	if err != nil || got.GetResult().GetText() != "The port is 8080." || got.GetResult().GetKey() != "k1" || got.GetResult().GetUsage().GetCostMicroUsd() != 7 {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = client.Infer(b.Context(), req)
	if err != nil || got.GetResult().GetError() == "" {
		t.Errorf("got %v, %v", got, err)
	}
	if b.stored("k1") != nil {
		t.Error("the result is stored")
	}
	b.IsNewest()
}

func TestInferRefuses(t *testing.T) {
	b := newBed(t)
	client := b.client()
	message := &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Sum up.")}
	for field, req := range map[string]*harnessv1.InferRequest{
		"job.model":            {Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{message}}},
		"request.messages":     {Job: &harnessv1.Job{Model: "openai:m"}},
		"request.messages[1]":  {Job: &harnessv1.Job{Model: "openai:m"}, Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{message, {Role: harnessv1.Role_ROLE_USER, Content: b.Blob("x")}}}},
		"job.model ":           {Job: &harnessv1.Job{Model: "grpc:127.0.0.1:1"}, Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{message}}},
		"request.messages[0]":  {Job: &harnessv1.Job{Model: "openai:m"}, Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{{ToolCalls: []*harnessv1.ToolCall{{Arguments: b.Blob("x")}}}}}},
		"request.messages[1] ": {Job: &harnessv1.Job{Model: "openai:m"}, Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{message, {Parts: []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Blob: b.Blob("x").GetBlob()}}}}}}}},
	} {
		_, err := client.Infer(b.Context(), req)
		if invalid := fault.FieldOf(err); status.Code(err) != codes.InvalidArgument || invalid == nil || invalid.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if b.calls() != 0 {
		t.Errorf("%d calls", b.calls())
	}
}

// TestInferEndsWithItsCaller: a caller that leaves ends the call.
func TestInferEndsWithItsCaller(t *testing.T) {
	b := newBed(t, hang(""))
	client := b.client()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() {
		_, err := client.Infer(ctx, &harnessv1.InferRequest{
			Job:     &harnessv1.Job{Model: "openai:test-model"},
			Request: &harnessv1.ModelRequest{Messages: []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Sum up.")}}},
		})
		ended <- err
	}()
	b.await("the call", func() bool { return b.calls() == 1 })
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func (b *bed) client() harnessv1.InferenceServiceClient {
	b.Helper()
	server := b.server(func(cfg *inferenceserver.Config) { cfg.Log = nil })
	return harnessv1.NewInferenceServiceClient(steptest.Dial(b.TB, steptest.Serve(b.TB, server.Register)))
}
