package turnserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

// bed is a run log with a turn worker, its tool host and its model server.
type bed struct {
	*steptest.Bed
	host      harnessv1.ToolHostServiceClient
	model     *modeltest.Server
	server    *turnserver.Server
	workspace string
}

// newBed makes a worker that does not run yet. The model answers with replies, in
// order.
func newBed(t testing.TB, replies ...modeltest.Reply) *bed {
	t.Helper()
	return newBedWith(t, nil, nil, replies...)
}

// newBedWith is newBed with an interceptor in the tool host, and with a change of the
// worker's configuration.
func newBedWith(t testing.TB, intercept grpc.UnaryServerInterceptor, change func(*turnserver.Config), replies ...modeltest.Reply) *bed {
	t.Helper()
	return newBedOn(t, steptest.New(t), intercept, change, replies...)
}

// withoutHeartbeats is a bus on which only a poke makes a worker read its inbox.
func withoutHeartbeats(t *testing.T) *steptest.Bed {
	return steptest.NewLayout(t, jetstream.Layout{Takeover: steptest.WithoutHeartbeats})
}

func newBedOn(t testing.TB, on *steptest.Bed, intercept grpc.UnaryServerInterceptor, change func(*turnserver.Config), replies ...modeltest.Reply) *bed {
	t.Helper()
	b := &bed{Bed: on, host: steptest.ToolHost(t, intercept), model: modeltest.NewServer(t, replies...), workspace: t.TempDir()}
	provider, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: b.model.BaseURL(), HTTPClient: b.model.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := turnserver.Config{
		Log: b.Log, ToolHost: b.host, Logger: b.Logger(), Content: true,
		Hooks: hookcaller.New(hookcaller.Config{ToolHost: b.host, Log: b.Log}),
		Open: func(ref string) (model.Provider, string, error) {
			kind, name, _ := strings.Cut(ref, ":")
			if kind != "test" {
				return nil, "", fmt.Errorf("unknown provider %q", kind)
			}
			return provider, name, nil
		},
		Price: func(string, *model.Response) uint64 { return 7 },
	}
	if change != nil {
		change(&cfg)
	}
	b.server = turnserver.New(cfg)
	return b
}

// state is that of a run before turn 2 of 9, with every tool allowed.
func (b *bed) state() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 1, MaxTurns: 9, MessageCount: 1,
		Model: "test:gpt", Workflow: workflow.Default(), Workspace: b.workspace, FirstSequence: 1, RunningSince: timestamppb.Now(),
		Config: runstate.Resolve(&harnessv1.LoopConfig{
			Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			Model: &harnessv1.ModelConfig{Streaming: proto.Bool(true), MaxTries: proto.Uint32(2)},
		}, 0),
	}
}

const goal = "Find the number."

// run stores the step that the turn continues from, and starts the worker.
func (b *bed) run(s *harnessv1.Snapshot) (stop func()) {
	b.Helper()
	b.put(s)
	return b.start()
}

// put stores the step that the turn continues from.
func (b *bed) put(s *harnessv1.Snapshot) {
	b.Helper()
	b.Put(&harnessv1.Step{
		From: workflow.Compaction, To: workflow.Turn, Snapshot: s,
		Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}},
	}, &harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)})
}

func (b *bed) start() (stop func()) { return b.Start(b.server.Run) }

// records reads the records of the turn up to its outcome.
func (b *bed) records() (journal []*harnessv1.Record, outcome *harnessv1.Record) {
	b.Helper()
	for {
		rec := b.Next()
		if rec.GetStep() != nil {
			return journal, rec
		}
		journal = append(journal, rec)
	}
}

// entries returns the names of journal entries.
func entries(journal []*harnessv1.Record) string {
	var names []string
	for _, rec := range journal {
		r := rec.GetJournal().ProtoReflect()
		names = append(names, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("entry")).Name()))
	}
	return strings.Join(names, " ")
}

// is fails the test unless a journal has these entries.
func (b *bed) is(journal []*harnessv1.Record, want string) {
	b.Helper()
	if got := entries(journal); got != want {
		b.Errorf("the journal has %s, want %s", got, want)
	}
}

// results returns the results of calls, by their ids.
func (b *bed) results(records ...*harnessv1.Record) map[string]string {
	b.Helper()
	texts := map[string]string{}
	for _, rec := range records {
		for _, m := range rec.GetAppended() {
			if m.GetRole() == harnessv1.Role_ROLE_TOOL {
				texts[m.GetToolCallId()] = b.text(m.GetContent())
			}
		}
	}
	return texts
}

// text returns a content, read from its blob if it is stored as one.
func (b *bed) text(c *harnessv1.Content) string {
	b.Helper()
	if c.GetBlob() == nil {
		return c.GetInline()
	}
	data, err := b.Log.Blob(b.Context(), b.Run, c.GetBlob().GetDigest())
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// write writes a file of the workspace.
func (b *bed) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.workspace, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// gate makes a named pipe in the workspace. passed returns what a command writes to it.
func (b *bed) gate(name string) (passed func() string) {
	b.Helper()
	path := filepath.Join(b.workspace, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() string {
		b.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
}

// call is a call with arguments as key and value.
func call(id, name string, arguments ...string) modeltest.Call {
	object := map[string]string{}
	for i := 0; i < len(arguments); i += 2 {
		object[arguments[i]] = arguments[i+1]
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{ID: id, Name: name, Arguments: string(text)}
}

func calls(c ...modeltest.Call) modeltest.Reply { return modeltest.Reply{Text: "Looking.", Calls: c} }

var done = modeltest.Call{ID: "done", Name: "work_complete", Arguments: `{"summary":"42"}`}

// hooks gives a run subscribers that are expressions.
func hooks(s *harnessv1.Snapshot, all ...*harnessv1.Hook) *harnessv1.Snapshot {
	s.Config.Hooks = &harnessv1.HookConfig{Enabled: proto.Bool(true)}
	for i, h := range all {
		h.Id = fmt.Sprintf("hook-%d", i)
	}
	s.Definition = &harnessv1.Definition{Hooks: all}
	return s
}

// newHost is a tool host that changes its ledger, as one that was replaced does. It
// describes itself with the ledger "former" once.
type newHost struct {
	mu        sync.Mutex
	described int
	seen      []string // methods
	// refuse, which may be nil, returns the error of a call.
	refuse func(method string) error
}

func (s *newHost) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	s.mu.Lock()
	s.seen = append(s.seen, method)
	first := method == "DescribeHost" && s.described == 0
	if method == "DescribeHost" {
		s.described++
	}
	s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(method); err != nil {
			return nil, err
		}
	}
	response, err := handler(ctx, req)
	if r, ok := response.(*harnessv1.DescribeHostResponse); ok && first {
		r.LedgerId = "former"
	}
	return response, err
}

// methods returns how often each method was called.
func (s *newHost) methods() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, m := range s.seen {
		count[m]++
	}
	return count
}

// processes returns the processes of commands in the workspace. Their ids may be those of
// a namespace, so it goes by the folder in which they work.
func (b *bed) processes() []string {
	b.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(all) == 0 {
		b.Fatal("no processes", err)
	}
	return slices.DeleteFunc(all, func(process string) bool {
		dir, err := os.Readlink(process)
		return err != nil || dir != b.workspace
	})
}

// within waits until is returns true.
func (b *bed) within(what string, is func() bool) {
	b.Helper()
	for !is() {
		select {
		case <-b.Context().Done():
			b.Fatalf("not reached: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// dial connects to the gRPC form of the worker.
func (b *bed) dial() *grpc.ClientConn {
	b.Helper()
	return steptest.Dial(b.TB, steptest.Serve(b.TB, b.server.Register))
}

// request returns the n-th request that the model server received, from 0.
func (b *bed) request(n int) *modeltest.Request {
	b.Helper()
	r, err := modeltest.ParseRequest(b.model.Requests()[n].Body)
	if err != nil {
		b.Fatal(err)
	}
	return r
}
