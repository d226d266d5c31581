package judgement

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// The mesh of all tests here: one process with every role.
var (
	harness   string
	address   string
	addresses = map[string]string{} // of every role
	gateway   harnessv1.GatewayServiceClient
	conn      *grpc.ClientConn
	models    = &modelServer{}
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "harness-judgement")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		stop, err := begin(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stop()
		return m.Run()
	}())
}

var readyLine = regexp.MustCompile(`ready role=(\S+) addr=(\S+)`)

// begin builds the binary, starts it and connects to it.
func begin(dir string) (stop func(), err error) {
	harness = filepath.Join(dir, "harness")
	build := exec.Command("go", "build", "-o", harness, "../../cmd/harness")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	models.start()
	cmd := exec.Command(harness, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--sync", "interval")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "OPENAI_BASE_URL=" + models.http.BaseURL()}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(errs)
	var said []string
	for address == "" && lines.Scan() {
		said = append(said, lines.Text())
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			addresses[m[1]] = m[2]
			address = addresses["gateway"]
		}
	}
	if address == "" {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("harness serve: %w\n%s", cmd.Wait(), strings.Join(said, "\n"))
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
			if os.Getenv("HARNESS_TEST_STDERR") != "" {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	})
	if conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, err
	}
	gateway = harnessv1.NewGatewayServiceClient(conn)
	return func() {
		_ = conn.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		reading.Wait()
		_ = cmd.Wait()
		models.http.Close()
	}, nil
}

// model answers requests; n counts from 0.
type model func(n int, req *modeltest.Request) modeltest.Reply

// modelServer is the one model server: a test's model has a name of its own.
type modelServer struct {
	http *modeltest.Server

	mu     sync.Mutex
	models map[string]*recordedModel
}

type recordedModel struct {
	answer   model
	mu       sync.Mutex
	requests []*modeltest.Request
}

// everlasting is a testing.TB for what outlives the tests.
type everlasting struct{ testing.TB }

func (everlasting) Helper()        {}
func (everlasting) Cleanup(func()) {}
func (everlasting) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "model server: "+format+"\n", args...)
	os.Exit(1)
}
func (e everlasting) Fatalf(format string, args ...any) { e.Errorf(format, args...) }

func (s *modelServer) start() {
	s.models = map[string]*recordedModel{}
	s.http = modeltest.NewServerFunc(everlasting{}, func(req *modeltest.Request) modeltest.Reply {
		s.mu.Lock()
		m := s.models[req.Model]
		s.mu.Unlock()
		if m == nil {
			return modeltest.Reply{Status: 404, ErrorMessage: "there is no model " + req.Model}
		}
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, req)
		m.mu.Unlock()
		reply := m.answer(n, req)
		for i := range reply.Calls {
			if reply.Calls[i].ID == "" {
				reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", n+1, i)
			}
		}
		return reply
	})
}

var nameForm = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// run is a run under way.
type run struct {
	t     *testing.T
	id    string
	model *recordedModel
	dir   string
}

// start starts a run with a model, in a workspace of its own. The spec may be changed
// by edits before.
func start(t *testing.T, m model, edits ...func(*harnessv1.RunSpec)) *run {
	t.Helper()
	r := prepare(t, m)
	spec := r.spec(edits...)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := gateway.StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.id, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return r
}

// prepare makes a run's name, model and workspace.
func prepare(t *testing.T, m model) *run {
	t.Helper()
	meshtest.Rely(t)
	name := nameForm.ReplaceAllString(t.Name(), "-")
	r := &run{t: t, id: name[max(0, len(name)-60):], model: &recordedModel{answer: m}, dir: t.TempDir()}
	models.mu.Lock()
	models.models[r.id] = r.model
	models.mu.Unlock()
	return r
}

// spec is a run's spec.
func (r *run) spec(edits ...func(*harnessv1.RunSpec)) *harnessv1.RunSpec {
	spec := &harnessv1.RunSpec{
		Goal:  content.Inline("Do the task."),
		Agent: &harnessv1.AgentSpec{Model: "openai:" + r.id}, Workspace: r.dir,
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}},
	}
	for _, edit := range edits {
		edit(spec)
	}
	return spec
}

// limit is far more than any run here takes.
const limit = 60 * time.Second

// play starts a run and waits until it rests or has ended.
func play(t *testing.T, m model, edits ...func(*harnessv1.RunSpec)) *story {
	t.Helper()
	return start(t, m, edits...).rest()
}

// story is what came of a run up to its rest.
type story struct {
	*run
	// Result is what watchers were told last.
	Result *harnessv1.HarnessResult
	// Events are all so far.
	Events []*harnessv1.Event
	// Requests are what the model was sent.
	Requests []*modeltest.Request
}

// rest waits until the run rests or has ended.
func (r *run) rest() *story {
	r.t.Helper()
	return r.follow(harnessv1.WatchUntil_WATCH_UNTIL_REST, 0)
}

// restAfter waits until the run rests or has ended after a version; events of before
// are not in the story.
func (r *run) restAfter(version uint64) *story {
	r.t.Helper()
	return r.follow(harnessv1.WatchUntil_WATCH_UNTIL_REST, version)
}

func (r *run) follow(until harnessv1.WatchUntil, after uint64) *story {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	stream, err := gateway.WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.id, Until: until, AfterVersion: after, NoDeltas: true})
	if err != nil {
		r.t.Fatal(err)
	}
	s := &story{run: r}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.t.Fatalf("watch: %v\n%s", err, s)
		}
		switch u := m.GetUpdate().GetUpdate().(type) {
		case *harnessv1.RunUpdate_Event:
			s.Events = append(s.Events, u.Event)
		case *harnessv1.RunUpdate_Result:
			s.Result = u.Result
		}
	}
	r.model.mu.Lock()
	s.Requests = slices.Clone(r.model.requests)
	r.model.mu.Unlock()
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Log(s)
		}
	})
	return s
}

// verdict is status, reason and whether the work was accepted, such as
// "DONE agent_done accepted".
func (s *story) verdict() string {
	v := strings.TrimPrefix(s.Result.GetStatus().String(), "RUN_STATUS_") + " " + s.Result.GetReason().GetKind()
	if s.Result.GetAccepted() {
		v += " accepted"
	}
	return v
}

// want fails the test unless the verdict is as said.
func (s *story) want(verdict string) {
	s.t.Helper()
	if got := s.verdict(); got != verdict {
		s.t.Fatalf("ended %s (%s), want %s", got, s.Result.GetReason().GetMessage(), verdict)
	}
}

// names are the dotted names of the events, in order, of those kinds only when some
// are named.
func (s *story) names(only ...string) []string {
	var names []string
	for _, e := range s.Events {
		if n := eventjson.Type(e); len(only) == 0 || slices.Contains(only, n) {
			names = append(names, n)
		}
	}
	return names
}

// text is all that the model was sent with request n, from 0.
func (s *story) text(n int) string {
	if n >= len(s.Requests) {
		return ""
	}
	var b strings.Builder
	for _, m := range s.Requests[n].Messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// news is the text of the messages that request n has beyond those of the request
// before it.
func (s *story) news(n int) string {
	if n == 0 {
		return s.text(0)
	}
	return strings.TrimPrefix(s.text(n), s.text(n-1))
}

// String is the story in a few lines, for failures.
func (s *story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s\n", s.id, s.Result)
	for _, e := range s.Events {
		line, _ := eventjson.Event(e)
		fmt.Fprintf(&b, "  %.300s\n", line)
	}
	for i := range s.Requests {
		fmt.Fprintf(&b, "request %d, new: %.2500s\n", i+1, s.news(i))
	}
	return b.String()
}

// state is the newest snapshot.
func (r *run) state() *harnessv1.Snapshot {
	r.t.Helper()
	got, err := gateway.GetState(r.t.Context(), &harnessv1.GetStateRequest{RunId: r.id})
	if err != nil {
		r.t.Fatal(err)
	}
	return got.GetSnapshot()
}

// write puts a file into the workspace.
func (r *run) write(path, content string) {
	r.t.Helper()
	full := filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// exists says whether a file is in the workspace.
func (r *run) exists(path string) bool {
	_, err := os.Stat(filepath.Join(r.dir, path))
	return err == nil
}

// call is a tool call with arguments as a JSON-able value.
func call(name string, arguments any) modeltest.Call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: name, Arguments: string(raw)}
}

// args are arguments.
type args = map[string]any

// calls is a reply that makes calls.
func calls(c ...modeltest.Call) modeltest.Reply { return modeltest.Reply{Calls: c} }

// says is a reply without calls.
func says(text string) modeltest.Reply { return modeltest.Reply{Text: text} }

// done is the call that ends the work.
func done() modeltest.Reply { return calls(call("work_complete", args{"summary": "done"})) }

// replies answers in order, and with the last one from then on.
func replies(all ...modeltest.Reply) model {
	return func(n int, _ *modeltest.Request) modeltest.Reply {
		r := all[min(n, len(all)-1)]
		r.Calls = slices.Clone(r.Calls)
		return r
	}
}
