// Package live runs the shipped binary for tests that observe how it judges a run: when a
// run may stop, which evidence it needs, how it is steered, which subscribers are called.
// Runs are those of the background process of a fresh home, as users have it, or of
// harness serve for the tests that Main names.
//
// Models are functions that a strict server of the provider's protocol calls; the server
// records every request. Workspaces, commands, hooks and checks are real.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// Model returns the reply to request n, from 0.
type Model func(n int, req *modeltest.Request) modeltest.Reply

// modelServer is the model server of all tests. Each test has a separate model name.
type modelServer struct {
	http *modeltest.Server

	mu     sync.Mutex
	models map[string]*RecordedModel
}

// RecordedModel is the model of one run, with the requests that it received.
type RecordedModel struct {
	Answer   Model
	mu       sync.Mutex
	Requests []*modeltest.Request
}

// processTB is a testing.TB for a server that outlives single tests.
type processTB struct{ testing.TB }

func (processTB) Helper()        {}
func (processTB) Cleanup(func()) {}
func (processTB) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "model server: "+format+"\n", args...)
	os.Exit(1)
}
func (e processTB) Fatalf(format string, args ...any) { e.Errorf(format, args...) }

// ModelURL returns the address of the model server, with /v1.
func ModelURL() string { return models.http.BaseURL() }

func (s *modelServer) start() {
	s.models = map[string]*RecordedModel{}
	s.http = modeltest.NewServerFunc(processTB{}, func(req *modeltest.Request) modeltest.Reply {
		s.mu.Lock()
		m := s.models[req.Model]
		s.mu.Unlock()
		if m == nil {
			return modeltest.Reply{Status: 404, ErrorMessage: "unknown model " + req.Model}
		}
		m.mu.Lock()
		n := len(m.Requests)
		m.Requests = append(m.Requests, req)
		m.mu.Unlock()
		reply := m.Answer(n, req)
		for i := range reply.Calls {
			if reply.Calls[i].ID == "" {
				reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", n+1, i)
			}
		}
		return reply
	})
}

// RenameModel gives the model of a run another name, for tests that need a model of the
// catalogue. One test at a time can use a name.
func RenameModel(spec *harnessv1.RunSpec, name string) {
	models.mu.Lock()
	defer models.mu.Unlock()
	models.models[name] = models.models[strings.TrimPrefix(spec.Agent.Model, "openai:")]
	spec.Agent.Model = "openai:" + name
}

var nameForm = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// Run is a run of a test.
type Run struct {
	T     *testing.T
	ID    string
	Model *RecordedModel
	Dir   string
}

// Start starts a run with a model in a new workspace. edits change the spec first.
func Start(t *testing.T, m Model, edits ...func(*harnessv1.RunSpec)) *Run {
	t.Helper()
	r := Prepare(t, m)
	spec := r.Spec(edits...)
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	if _, err := Gateway(t).StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return r
}

// Prepare creates the name, the model and the workspace of a run.
func Prepare(t *testing.T, m Model) *Run {
	t.Helper()
	program.Rely(t)
	name := nameForm.ReplaceAllString(t.Name(), "-")
	r := &Run{T: t, ID: name[max(0, len(name)-60):], Model: &RecordedModel{Answer: m}, Dir: t.TempDir()}
	models.mu.Lock()
	models.models[r.ID] = r.Model
	models.mu.Unlock()
	return r
}

// Spec returns the spec of the run, changed by edits. Its commands have network, so that
// they ask at every level of confinement unless something allows them.
func (r *Run) Spec(edits ...func(*harnessv1.RunSpec)) *harnessv1.RunSpec {
	spec := &harnessv1.RunSpec{
		Goal:  content.Inline("Do the task."),
		Agent: &harnessv1.AgentSpec{Model: "openai:" + r.ID}, Workspace: r.Dir,
		Config: &harnessv1.LoopConfig{
			Tools:   &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			Sandbox: &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}},
		},
	}
	for _, edit := range edits {
		edit(spec)
	}
	return spec
}

// Limit is far more time than any run of these tests takes.
const Limit = 60 * time.Second

// Play starts a run and waits until it is parked or has ended.
func Play(t *testing.T, m Model, edits ...func(*harnessv1.RunSpec)) *Transcript {
	t.Helper()
	return Start(t, m, edits...).Wait()
}

// Transcript is a run up to its park or end.
type Transcript struct {
	*Run
	// Result is the last result that watchers received.
	Result *harnessv1.HarnessResult
	// Events are all events so far.
	Events []*harnessv1.Event
	// Requests are the requests to the model.
	Requests []*modeltest.Request
}

// Wait waits until the run is parked or has ended.
func (r *Run) Wait() *Transcript {
	r.T.Helper()
	return r.Follow(harnessv1.WatchUntil_WATCH_UNTIL_REST, 0)
}

// WaitAfter waits until the run is parked or has ended after a version. The transcript
// has only later events.
func (r *Run) WaitAfter(version uint64) *Transcript {
	r.T.Helper()
	return r.Follow(harnessv1.WatchUntil_WATCH_UNTIL_REST, version)
}

// Follow watches the run after a version and returns its transcript.
func (r *Run) Follow(until harnessv1.WatchUntil, after uint64) *Transcript {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), Limit)
	defer cancel()
	stream, err := Gateway(r.T).WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID, Until: until, AfterVersion: after, NoDeltas: true, Tree: proto.Bool(false)})
	if err != nil {
		r.T.Fatal(err)
	}
	s := &Transcript{Run: r}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.T.Fatalf("watch: %v\n%s", err, s)
		}
		switch u := m.GetUpdate().GetUpdate().(type) {
		case *harnessv1.RunUpdate_Event:
			s.Events = append(s.Events, u.Event)
		case *harnessv1.RunUpdate_Result:
			s.Result = u.Result
		}
	}
	r.Model.mu.Lock()
	s.Requests = slices.Clone(r.Model.Requests)
	r.Model.mu.Unlock()
	r.T.Cleanup(func() {
		if r.T.Failed() {
			r.T.Log(s)
		}
	})
	return s
}

// Verdict returns status, reason and acceptance, such as "DONE agent_done accepted".
func (s *Transcript) Verdict() string {
	v := strings.TrimPrefix(s.Result.GetStatus().String(), "RUN_STATUS_") + " " + s.Result.GetReason().GetKind()
	if s.Result.GetAccepted() {
		v += " accepted"
	}
	return v
}

// Want fails the test unless the verdict is verdict.
func (s *Transcript) Want(verdict string) {
	s.T.Helper()
	if got := s.Verdict(); got != verdict {
		s.T.Fatalf("ended %s (%s), want %s", got, s.Result.GetReason().GetMessage(), verdict)
	}
}

// Names returns the dotted names of the events in order; if only is not empty, those in
// it.
func (s *Transcript) Names(only ...string) []string {
	var names []string
	for _, e := range s.Events {
		if n := eventjson.Type(e); len(only) == 0 || slices.Contains(only, n) {
			names = append(names, n)
		}
	}
	return names
}

// Text returns the messages of request n, from 0.
func (s *Transcript) Text(n int) string {
	if n >= len(s.Requests) {
		return ""
	}
	var b strings.Builder
	for _, m := range s.Requests[n].Messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// Added returns the text that request n has in addition to the request before it.
func (s *Transcript) Added(n int) string {
	if n == 0 {
		return s.Text(0)
	}
	return strings.TrimPrefix(s.Text(n), s.Text(n-1))
}

// String returns the transcript in a few lines, for failures.
func (s *Transcript) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s\n", s.ID, s.Result)
	for _, e := range s.Events {
		line, _ := eventjson.Event(e)
		fmt.Fprintf(&b, "  %.300s\n", line)
	}
	for i := range s.Requests {
		fmt.Fprintf(&b, "request %d, new: %.2500s\n", i+1, s.Added(i))
	}
	return b.String()
}

// State returns the newest snapshot.
func (r *Run) State() *harnessv1.Snapshot {
	r.T.Helper()
	got, err := Gateway(r.T).GetState(r.T.Context(), &harnessv1.GetStateRequest{RunId: r.ID})
	if err != nil {
		r.T.Fatal(err)
	}
	return got.GetSnapshot()
}

// Write writes a file in the workspace.
func (r *Run) Write(path, content string) {
	r.T.Helper()
	full := filepath.Join(r.Dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// Exists reports whether a file is in the workspace.
func (r *Run) Exists(path string) bool {
	_, err := os.Stat(filepath.Join(r.Dir, path))
	return err == nil
}

// Call returns a tool call; arguments are encoded as JSON.
func Call(name string, arguments any) modeltest.Call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: name, Arguments: string(raw)}
}

// Args are the arguments of a call.
type Args = map[string]any

// Calls returns a reply with calls.
func Calls(c ...modeltest.Call) modeltest.Reply { return modeltest.Reply{Calls: c} }

// Message returns a reply without calls.
func Message(text string) modeltest.Reply { return modeltest.Reply{Text: text} }

// Done returns the reply that ends the work.
func Done() modeltest.Reply { return Calls(Call("work_complete", Args{"summary": "done"})) }

// Replies returns a model that replies in order and repeats the last reply.
func Replies(all ...modeltest.Reply) Model {
	return func(n int, _ *modeltest.Request) modeltest.Reply {
		r := all[min(n, len(all)-1)]
		r.Calls = slices.Clone(r.Calls)
		return r
	}
}
