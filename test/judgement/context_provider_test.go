package judgement

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// contextService is a custom ContextService.
type contextService struct {
	harnessv1.UnimplementedContextServiceServer
	answer func(context.Context, *harnessv1.ProvideContextRequest) (string, error)

	mu    sync.Mutex
	asked []*harnessv1.ProvideContextRequest
}

func (c *contextService) ProvideContext(ctx context.Context, req *harnessv1.ProvideContextRequest) (*harnessv1.ProvideContextResponse, error) {
	c.mu.Lock()
	c.asked = append(c.asked, req)
	c.mu.Unlock()
	text, err := c.answer(ctx, req)
	return &harnessv1.ProvideContextResponse{Text: text}, err
}

// contextServe serves a ContextService and returns its address.
func contextServe(t *testing.T, answer func(context.Context, *harnessv1.ProvideContextRequest) (string, error)) (service *contextService, target string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service = &contextService{answer: answer}
	server := grpc.NewServer()
	harnessv1.RegisterContextServiceServer(server, service)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return service, listener.Addr().String()
}

// Custom providers add to the built-in sections, in their order, texts and
// services alike. A service is called once, at the start, with the run's data.
func TestContextProvidersStack(t *testing.T) {
	t.Parallel()
	service, target := contextServe(t, func(_ context.Context, req *harnessv1.ProvideContextRequest) (string, error) {
		return "\nfrom the service for " + req.GetProvider() + "\n", nil
	})
	r := live.Prepare(t, jitScript(jitLooks(3)...))
	r.Write("AGENTS.md", "the standing rule")
	s := jitBegin(r, contextInstructions("the agent's own"), contextProvide(
		&harnessv1.ContextProvider{Name: "House rules", Text: "Be kind."},
		&harnessv1.ContextProvider{Name: "Tickets", Grpc: target},
		&harnessv1.ContextProvider{Name: "Glossary", Text: "A turn is one answer."},
		&harnessv1.ContextProvider{Name: "Calendar", Grpc: target},
	)).Wait()
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	contextOrder(t, prompt, "the agent's own", r.Dir, "the standing rule", "House rules\nBe kind.", "Tickets\nfrom the service for Tickets\n",
		"Glossary\nA turn is one answer.", "Calendar\nfrom the service for Calendar\n", "read_file: ", "work_complete")
	service.mu.Lock()
	defer service.mu.Unlock()
	var asked []string
	for _, req := range service.asked {
		asked = append(asked, req.GetProvider())
		if req.GetRunId() != r.ID || req.GetNamespace() != "default" || req.GetGoal() != "Do the task." || req.GetWorkspace() != r.Dir {
			t.Errorf("asked is %v", req)
		}
	}
	slices.Sort(asked)
	jitSame(t, "asked", asked, "Calendar", "Tickets")
	if len(s.Names("hook.error")) != 0 {
		t.Errorf("%v", s.Names())
	}
	jitStable(t, s)
}

// A service that does not answer, that refuses or that is not there is left out, and
// an event reports it. The run continues with the other sections.
func TestContextProviderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	_, good := contextServe(t, func(context.Context, *harnessv1.ProvideContextRequest) (string, error) { return "sound", nil })
	_, failing := contextServe(t, func(context.Context, *harnessv1.ProvideContextRequest) (string, error) {
		return "half a text", errors.New("the calendar is closed")
	})
	_, hanging := contextServe(t, func(ctx context.Context, _ *harnessv1.ProvideContextRequest) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for name, c := range map[string]struct{ target, says string }{
		"refuses":      {failing, "the calendar is closed"},
		"hangs":        {hanging, ""},
		"says nothing": {silent.Addr().String(), ""},
		"is not there": {gone.Addr().String(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, jitScript(jitLooks(1)...), contextProvide(
				&harnessv1.ContextProvider{Name: "Broken", Grpc: c.target}, &harnessv1.ContextProvider{Name: "Good", Grpc: good}))
			s.Want("DONE agent_done accepted")
			prompt := contextPrompt(t, s)
			contextOnce(t, prompt, "Good\nsound")
			contextNone(t, prompt, "Broken", "half a text")
			var failures []*harnessv1.HookError
			for _, e := range s.Events {
				if h := e.GetHookError(); h != nil {
					failures = append(failures, h)
				}
			}
			if len(failures) != 1 || failures[0].GetHookId() != "Broken" || failures[0].GetTopic() != "context" || failures[0].GetError() == "" || failures[0].GetFailedClosed() {
				t.Fatalf("told is %v", failures)
			}
			modesSays(t, "the error", failures[0].GetError(), c.says)
		})
	}
}

// A service's text is bounded; one without a text adds no heading.
func TestContextProviderTextIsBounded(t *testing.T) {
	t.Parallel()
	_, target := contextServe(t, func(_ context.Context, req *harnessv1.ProvideContextRequest) (string, error) {
		if req.GetProvider() == "Nothing" {
			return " \n", nil
		}
		return strings.Repeat("word ", 100_000), nil
	})
	s := live.Play(t, live.Replies(live.Done()), contextProvide(
		&harnessv1.ContextProvider{Name: "Flood", Grpc: target}, &harnessv1.ContextProvider{Name: "Nothing", Grpc: target}))
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	if n := strings.Count(prompt, "word "); n == 0 || n*len("word ") > 64<<10 {
		t.Errorf("%d words are taken", n)
	}
	contextNone(t, prompt, "Nothing")
}

// Providers that cannot be are refused at the start, with their place.
func TestContextBadProvidersAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	good := &harnessv1.ContextProvider{Name: "good", Text: "x"}
	many := []*harnessv1.ContextProvider{good}
	for i := range 16 {
		many = append(many, &harnessv1.ContextProvider{Name: strings.Repeat("n", i+1), Text: "x"})
	}
	const at = "spec.agent.context_providers"
	for name, c := range map[string]struct {
		providers []*harnessv1.ContextProvider
		words     []string
	}{
		"both":      {[]*harnessv1.ContextProvider{{Name: "a", Text: "x", Grpc: "h:1"}}, []string{at + "[1]", "both"}},
		"neither":   {[]*harnessv1.ContextProvider{{Name: "a"}}, []string{at + "[1]", "neither"}},
		"no name":   {[]*harnessv1.ContextProvider{{Text: "x"}}, []string{at + "[1].name"}},
		"twice":     {[]*harnessv1.ContextProvider{{Name: "good", Text: "y"}}, []string{at + "[1].name", "duplicate"}},
		"no target": {[]*harnessv1.ContextProvider{{Name: "a", Grpc: "localhost"}}, []string{at + "[1].grpc", "HOST:PORT"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jitRefused(live.Prepare(t, live.Replies(live.Done())), contextProvide(append([]*harnessv1.ContextProvider{good}, c.providers...)...), c.words...)
		})
	}
	for name, providers := range map[string][]*harnessv1.ContextProvider{
		"too many":      many,
		"too long text": {{Name: "a", Text: strings.Repeat("x", 64<<10+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := jitTry(live.Prepare(t, live.Replies(live.Done())), contextProvide(providers...))
			if err == nil || !strings.Contains(err.Error(), at) {
				t.Errorf("the start gives %v", err)
			}
		})
	}
}
