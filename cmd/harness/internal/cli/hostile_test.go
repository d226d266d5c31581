package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hostile is what a model or a server may write to take over a terminal: a title, a cleared
// screen by an escape sequence and by a C1 control, text that reads backwards, a bell.
const hostile = "evil\x1b]0;owned\x07\x1b[2J\u009b2J\u0090\u202egnp.exe\u2066\u2028\b\x7f\r"

// fill sets every text of a message to a hostile one that begins with its place, with one
// element in each list, down to a depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if in := f.ContainingOneof(); in != nil && m.WhichOneof(in) != nil && !f.HasOptionalKeyword() {
			continue // the first of them
		}
		switch {
		case f.IsMap():
			if f.MapKey().Kind() == protoreflect.StringKind && f.MapValue().Kind() == protoreflect.StringKind {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString("k"+hostile).MapKey(), protoreflect.ValueOfString(hostile))
			}
		case f.Kind() == protoreflect.MessageKind && depth == 0:
		case f.Kind() == protoreflect.MessageKind && f.Message().FullName().Parent() == "google.protobuf":
		case f.Kind() == protoreflect.MessageKind && f.IsList():
			item := m.Mutable(f).List().AppendMutable().Message()
			fill(item, depth-1)
		case f.Kind() == protoreflect.MessageKind:
			fill(m.Mutable(f).Message(), depth-1)
		case f.Kind() == protoreflect.StringKind && f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString(hostile))
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(hostile))
		case f.Kind() == protoreflect.Uint32Kind && !f.IsList():
			m.Set(f, protoreflect.ValueOfUint32(1))
		}
	}
}

func filled[M proto.Message](m M) M {
	fill(m.ProtoReflect(), 5)
	return m
}

// allEvents returns a hostile event of each kind.
func allEvents() (all []*harnessv1.Event) {
	kinds := (&harnessv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("event").Fields()
	for i := range kinds.Len() {
		e := &harnessv1.Event{}
		m := e.ProtoReflect().Mutable(kinds.Get(i)).Message()
		fill(m, 4)
		all = append(all, e)
	}
	return all
}

// hostileGateway answers everything with hostile texts, or refuses everything with one.
type hostileGateway struct {
	harnessv1.UnimplementedGatewayServiceServer
	refuse bool
	status harnessv1.RunStatus
}

func (g *hostileGateway) answer() error {
	if g.refuse {
		return status.Error(codes.FailedPrecondition, hostile)
	}
	return nil
}

func (g *hostileGateway) run() *harnessv1.Run {
	r := filled(&harnessv1.Run{})
	r.Status, r.RunId, r.Namespace = g.status, "r", "default"
	return r
}

func (g *hostileGateway) result() *harnessv1.HarnessResult {
	r := filled(&harnessv1.HarnessResult{})
	r.Status = g.status
	for _, content := range []*harnessv1.Content{r.Answer, r.Summary} {
		content.Value = &harnessv1.Content_Inline{Inline: hostile}
	}
	return r
}

func (g *hostileGateway) GetRun(context.Context, *harnessv1.GetRunRequest) (*harnessv1.GetRunResponse, error) {
	r := filled(&harnessv1.GetRunResponse{})
	r.Run, r.Result = g.run(), g.result()
	return r, g.answer()
}

func (g *hostileGateway) GetState(context.Context, *harnessv1.GetStateRequest) (*harnessv1.GetStateResponse, error) {
	return filled(&harnessv1.GetStateResponse{}), g.answer()
}

func (g *hostileGateway) GetConversation(context.Context, *harnessv1.GetConversationRequest) (*harnessv1.GetConversationResponse, error) {
	r := filled(&harnessv1.GetConversationResponse{})
	for _, m := range r.GetMessages() {
		m.Content = &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: hostile}}
	}
	return r, g.answer()
}

func (g *hostileGateway) GetContext(context.Context, *harnessv1.GetContextRequest) (*harnessv1.GetContextResponse, error) {
	r := filled(&harnessv1.GetContextResponse{})
	r.NextPageToken = ""
	return r, g.answer()
}

func (g *hostileGateway) GetBlob(_ *harnessv1.GetBlobRequest, stream grpc.ServerStreamingServer[harnessv1.GetBlobResponse]) error {
	if err := g.answer(); err != nil {
		return err
	}
	return stream.Send(&harnessv1.GetBlobResponse{Chunk: []byte(hostile + "\x9b2J")})
}

func (g *hostileGateway) ListRuns(context.Context, *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	return &harnessv1.ListRunsResponse{Runs: []*harnessv1.Run{g.run()}}, g.answer()
}

func (g *hostileGateway) ListPending(context.Context, *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	r := filled(&harnessv1.ListPendingResponse{})
	r.NextPageToken = ""
	return r, g.answer()
}

func (g *hostileGateway) StartRun(context.Context, *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	return &harnessv1.StartRunResponse{Namespace: "default", RunId: "r"}, g.answer()
}

func (g *hostileGateway) DeleteRun(context.Context, *harnessv1.DeleteRunRequest) (*harnessv1.DeleteRunResponse, error) {
	return &harnessv1.DeleteRunResponse{}, g.answer()
}

func (g *hostileGateway) SendInput(context.Context, *harnessv1.SendInputRequest) (*harnessv1.SendInputResponse, error) {
	return filled(&harnessv1.SendInputResponse{}), g.answer()
}

func (g *hostileGateway) InterruptRun(context.Context, *harnessv1.InterruptRunRequest) (*harnessv1.InterruptRunResponse, error) {
	return filled(&harnessv1.InterruptRunResponse{}), g.answer()
}

func (g *hostileGateway) CancelRun(context.Context, *harnessv1.CancelRunRequest) (*harnessv1.CancelRunResponse, error) {
	return filled(&harnessv1.CancelRunResponse{}), g.answer()
}

func (g *hostileGateway) ResumeRun(context.Context, *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	return filled(&harnessv1.ResumeRunResponse{}), g.answer()
}

func (g *hostileGateway) WatchRun(_ *harnessv1.WatchRunRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunResponse]) error {
	if err := g.answer(); err != nil {
		return err
	}
	version := uint64(0)
	send := func(u *harnessv1.RunUpdate) error {
		version++
		return stream.Send(&harnessv1.WatchRunResponse{Update: u})
	}
	for i, e := range allEvents() {
		e.Id, e.Version, e.TurnNumber = fmt.Sprintf("%d-0", i+1), uint64(i+1), 1
		if err := send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Event{Event: e}}); err != nil {
			return err
		}
	}
	if err := send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Delta{Delta: &harnessv1.Delta{TurnNumber: 2, Text: hostile, Reasoning: hostile}}}); err != nil {
		return err
	}
	return send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Result{Result: g.result()}})
}

func serveHostile(t *testing.T, g *hostileGateway) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	harnessv1.RegisterGatewayServiceServer(server, g)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "unix:" + socket
}

// tame fails the test if a terminal might obey the printed text.
func tame(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 ||
			r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			t.Errorf("%s prints %q: …%q", what, r, text[max(i-60, 0):min(i+20, len(text))])
			return
		}
	}
}

// TestNoTextFromOutsideReachesATerminalRaw: of each verb in each format, whether the
// gateway answers with hostile texts or refuses with one. JSON keeps its values.
func TestNoTextFromOutsideReachesATerminalRaw(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	for name, g := range map[string]*hostileGateway{
		"refused": {refuse: true}, "done": {status: harnessv1.RunStatus_RUN_STATUS_DONE}, "parked": {status: harnessv1.RunStatus_RUN_STATUS_PARKED},
		"failed": {status: harnessv1.RunStatus_RUN_STATUS_FAILED},
	} {
		address := serveHostile(t, g)
		for _, args := range [][]string{
			{"list"}, {"list", "--output", "json"},
			{"show", "r"}, {"show", "r", "--conversation"}, {"show", "r", "--state"}, {"show", "r", "--context"},
			{"show", "r", "--output", "json"}, {"show", "r", "--conversation", "--output", "json"}, {"show", "r", "--state", "--output", "json"}, {"show", "r", "--context", "--output", "json"},
			{"watch", "r"}, {"watch", "r", "--output", "jsonl"}, {"watch", "r", "--render", "markdown"},
			{"run", "--workspace", "/w", "--model", "openai:m", "--render", "markdown", "go"}, {"run", "--workspace", "/w", "--model", "openai:m", "--output", "jsonl", "go"},
			{"send", "r", "hello"}, {"answer", "r", "c", "yes"}, {"approve", "r", "c"}, {"interrupt", "r"}, {"cancel", "r"}, {"resume", "r"}, {"delete", "r"},
		} {
			if verb := args[0]; !g.refuse && (verb == "interrupt" || verb == "cancel" || verb == "resume") {
				continue // they wait for a run that does something
			}
			what := name + ": " + strings.Join(args, " ")
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				got := harnesstest.Call(t, map[string]string{"NO_COLOR": "1"}, "", append(args, "--server", address)...)
				live := strings.Contains(what, "markdown")
				if live { // it moves the cursor
					got.Err = unmoved(got.Err)
				}
				if !strings.HasSuffix(what, ": watch r") { // the answer, for a program
					tame(t, what+" on stdout", got.Out)
				}
				tame(t, what+" on stderr", got.Err)
				if g.refuse && (got.Code == 0 || !strings.Contains(got.Err, "evil")) {
					t.Errorf("%s: %+v", what, got)
				}
				if strings.HasSuffix(what, "--output json") && !g.refuse {
					if !json.Valid([]byte(got.Out)) || !strings.Contains(got.Out, `evil\u001b]0;owned\u0007\u001b[2J\u009b2J\u0090\u202egnp.exe\u2066\u2028\b\u007f`) {
						t.Errorf("%s: %.300s", what, got.Out)
					}
				}
			})
		}
	}
}

// unmoved removes the sequences of a live display.
func unmoved(text string) string {
	for _, sequence := range []string{"\x1b[?25l", "\x1b[?25h", "\x1b[J", "\x1b[K", "\x1b[?2026h", "\x1b[?2026l", "\r"} {
		text = strings.ReplaceAll(text, sequence, "")
	}
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		digits := strings.TrimLeft(after, "0123456789")
		if !found || !strings.HasPrefix(digits, "A") {
			return text
		}
		text = before + digits[1:]
	}
}
