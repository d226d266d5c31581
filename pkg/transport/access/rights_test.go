package access_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

func TestAttributesOfALine(t *testing.T) {
	const token = "0123456789abcdef"
	for line, want := range map[string]access.Caller{
		"":            {Name: "token-9f9f5111"},
		" *":          {Name: "token-9f9f5111"},
		" a,b":        {Name: "token-9f9f5111", Namespaces: []string{"a", "b"}},
		" name=nina":  {Name: "nina"},
		" a name=ci1": {Name: "ci1", Namespaces: []string{"a"}},
		" * roots=/srv/a/,/srv/b/../c providers=openai,anthropic may=hooks,commands tier=gold entitlements=x,y": {
			Name: "token-9f9f5111", Roots: []string{"/srv/a", "/srv/c"}, Providers: []string{"openai", "anthropic"},
			Rights: []access.Right{access.Hooks, access.Commands}, Tier: "gold", Entitlements: []string{"x", "y"},
		},
		" may=none": {Name: "token-9f9f5111", Rights: []access.Right{}},
	} {
		file, _, _ := tokens(t, token+line+"\n")
		got, ok := file.Find(token)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
	file, _, _ := tokens(t, "# a comment\n"+token+"1\n"+token+"2 * roots=/srv\n"+token+"3 a may=none\n")
	if lines := file.Unbounded(); !slices.Equal(lines, []int{2, 4}) {
		t.Errorf("without roots: %v", lines)
	}
}

func TestInvalidAttributeIsRefusedByLine(t *testing.T) {
	for attributes, want := range map[string]string{
		"roots=srv":                             "roots=: expected absolute paths",
		"roots=":                                "roots=: expected absolute paths",
		"roots=/a, /b":                          "absolute paths",
		"roots=/a roots=/b":                     "duplicate roots=",
		"roots=/":                               "roots=: / has every folder, and bounds nothing: leave roots= out",
		"roots=/srv,/":                          "roots=: / has every folder",
		"roots=/srv/a,/srv/b/../a/":             "roots=: duplicate folder",
		"providers=openai,script may=commands":  "providers=: script contradicts may=, which leaves out scripts",
		"may=none providers=replay":             "providers=: replay contradicts may=",
		"may=scripts providers=openai":          "may=: scripts contradicts providers=, which has neither script nor replay",
		"may=":                                  "may=: expected some of commands, hooks, checks, scripts, approve",
		"may=command":                           "may=: expected some of",
		"may=none,commands":                     "may=: expected some of",
		"may=hooks,hooks":                       "may=: duplicate hooks",
		"name=":                                 "name=: expected letters",
		"name=local":                            "name=: local is the name of callers without a token",
		"name=anonymous":                        "name=: anonymous is the name of callers",
		"name=a/b":                              "name=: expected letters",
		"tier=a,b":                              "tier=: expected letters",
		"providers=openai,":                     "providers=: expected letters",
		"providers=openai,openai":               "providers=: duplicate",
		"entitlements=x,,y":                     "entitlements=: expected letters",
		"rights=all":                            "unknown attribute: expected name=",
		"a name=x b":                            "without spaces",
		"name=x a":                              "without spaces",
		"name=00112233445566778899aabbccddeeff": "not 32 or more",
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte("\n0123456789abcdef "+attributes+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := access.Open(path, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0011223344") {
			t.Errorf("%q: %v, want %q", attributes, err, want)
		}
	}
}

// spec is a start that needs no right.
func spec(change func(*harnessv1.RunSpec)) *harnessv1.RunSpec {
	s := &harnessv1.RunSpec{
		Workspace: "/srv/work/project",
		Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5", Tools: []*harnessv1.ToolRule{
			{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY},
		}},
		Config: &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{}, Tools: &harnessv1.ToolConfig{}, Sandbox: &harnessv1.SandboxConfig{}},
	}
	if change != nil {
		change(s)
	}
	return s
}

func rules(policies ...*harnessv1.ToolRule) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) { s.Agent.Tools = policies }
}

func output(p *harnessv1.Predicate) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		s.Contract = &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{}, {Predicate: p}}}
	}
}

const (
	deny  = harnessv1.ToolDecision_TOOL_DECISION_DENY
	allow = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
)

// starts are what a start may need. With the attribute a token may not start it, and the
// error names field; without any it may.
var starts = map[string]struct {
	attribute, field string // an empty field: the token may start it
	change           func(*harnessv1.RunSpec)
}{
	"nothing":                  {"roots=/srv/work providers=openai may=none", "", nil},
	"no policy":                {"may=hooks,checks,scripts,approve", "spec.agent.tools", rules()},
	"commands that ask":        {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK})},
	"a later rule":             {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny}, &harnessv1.ToolRule{Name: "*", Policy: allow})},
	"a later pattern":          {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny}, &harnessv1.ToolRule{Name: "run_*", Policy: allow})},
	"a pattern denied":         {"may=none", "", rules(&harnessv1.ToolRule{Name: "run_*", Policy: deny})},
	"some denied":              {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny, Pattern: "^rm"})},
	"denied under a condition": {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny, When: "true"})},
	"denied by a prefix":       {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny, Prefix: "rm"})},
	"denied by a path":         {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny, Path: "docs/**"})},
	"denied by a host":         {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "run_command", Policy: deny, Host: "a.example"})},
	"some allowed":             {"may=none", "spec.agent.tools", rules(&harnessv1.ToolRule{Name: "*", Policy: deny}, &harnessv1.ToolRule{Name: "run_command", Policy: allow, Pattern: "^ls"})},
	"all denied":               {"may=none", "", rules(&harnessv1.ToolRule{Name: "*", Policy: deny}, &harnessv1.ToolRule{Name: "read_file", Policy: allow}, &harnessv1.ToolRule{Name: "run_command", Policy: deny, Pattern: "x"})},
	"a command hook":           {"may=commands,checks,scripts,approve", "spec.agent.hooks[1].command", func(s *harnessv1.RunSpec) { s.Agent.Hooks = []*harnessv1.Hook{{Cel: "true"}, {Command: "true"}} }},
	"a hook":                   {"may=none", "", func(s *harnessv1.RunSpec) { s.Agent.Hooks = []*harnessv1.Hook{{Cel: "true"}} }},
	"a command check":          {"may=commands,hooks,scripts,approve", "spec.contract.required_outputs[1].predicate.command", output(&harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS, Command: "make"})},
	"a command without a type": {"may=none", "spec.contract.required_outputs[1].predicate.command", output(&harnessv1.Predicate{Command: "make"})},
	"a stored contract":        {"may=none", "spec.contract.stored", func(s *harnessv1.RunSpec) { s.Contract = &harnessv1.TaskContract{Stored: &harnessv1.Content{}} }},
	"a check":                  {"may=none", "", output(&harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "a"})},
	"a scripted model":         {"may=commands,hooks,checks,approve", "spec.agent.model", func(s *harnessv1.RunSpec) { s.Agent.Model = "script:/x" }},
	"a replayed fallback":      {"may=none", "spec.agent.fallback_models[0]", func(s *harnessv1.RunSpec) { s.Agent.FallbackModels = []string{"replay:/x"} }},
	"a scripted summarizer": {"may=none", "spec.config.context.summarizer.model", func(s *harnessv1.RunSpec) {
		s.Config.Context.Summarizer = &harnessv1.SummarizerConfig{Model: "script:/x"}
	}},
	"another judge": {"providers=openai", "spec.config.quality.model", func(s *harnessv1.RunSpec) {
		s.Config.Quality = &harnessv1.QualityConfig{Model: "grpc:x:1"}
	}},
	"yolo":              {"may=commands,hooks,checks,scripts", "spec.config.tools.yolo", func(s *harnessv1.RunSpec) { yes := true; s.Config.Tools.Yolo = &yes }},
	"unconfined":        {"may=commands", "spec.config.sandbox.unconfined", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Unconfined = true }},
	"off":               {"may=commands,hooks,checks,scripts,prompts", "spec.config.sandbox.level", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Level = harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF }},
	"off beyond a root": {"roots=/srv/work", "spec.config.sandbox.level", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Level = harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF }},
	"kernel":            {"roots=/srv/work may=none", "", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Level = harnessv1.SandboxLevel_SANDBOX_LEVEL_KERNEL }},
	"an unconfined hook": {"may=commands,hooks", "spec.agent.hooks[1].unconfined", func(s *harnessv1.RunSpec) {
		s.Agent.Hooks = []*harnessv1.Hook{{Command: "true"}, {Command: "true", Unconfined: true}}
	}},
	"an unconfined hook beyond a root": {"roots=/srv/work", "spec.agent.hooks[0].unconfined", func(s *harnessv1.RunSpec) { s.Agent.Hooks = []*harnessv1.Hook{{Command: "true", Unconfined: true}} }},
	"a variable beyond a root":         {"roots=/srv/work", "spec.config.sandbox.env", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Env = []string{"A"} }},
	"a variable":                       {"may=commands", "spec.config.sandbox.env", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Env = []string{"A"} }},
	"another provider":                 {"providers=anthropic,vllm", "spec.agent.model", nil},
	"another fallback":                 {"providers=openai", "spec.agent.fallback_models[1]", func(s *harnessv1.RunSpec) { s.Agent.FallbackModels = []string{"openai:x", "anthropic:x"} }},
	"another summarizer": {"providers=openai", "spec.config.context.summarizer.model", func(s *harnessv1.RunSpec) {
		s.Config.Context.Summarizer = &harnessv1.SummarizerConfig{Model: "grpc:x:1"}
	}},
	"another workspace":        {"roots=/srv/works", "spec.workspace", nil},
	"no workspace":             {"roots=/srv/work", "spec.workspace", func(s *harnessv1.RunSpec) { s.Workspace = "" }},
	"a relative workspace":     {"roots=/srv", "spec.workspace", func(s *harnessv1.RunSpec) { s.Workspace = "srv" }},
	"a workspace above":        {"roots=/srv/work/project/a", "spec.workspace", nil},
	"a way out":                {"roots=/srv/work", "spec.workspace", func(s *harnessv1.RunSpec) { s.Workspace = "/srv/work/../other" }},
	"the root itself":          {"roots=/a,/srv/work/project", "", nil},
	"another profile":          {"roots=/srv/work", "spec.task.profile", func(s *harnessv1.RunSpec) { s.Task = &harnessv1.Task{Profile: "/srv/other"} }},
	"a profile within":         {"roots=/srv/work", "", func(s *harnessv1.RunSpec) { s.Task = &harnessv1.Task{Profile: "/srv/work/b"} }},
	"a named profile":          {"roots=/srv/work", "", func(s *harnessv1.RunSpec) { s.Task = &harnessv1.Task{Profile: "reports"} }},
	"a folder to read":         {"roots=/srv/work", "spec.config.sandbox.read[0]", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Read = []string{"/etc"} }},
	"a folder to write":        {"roots=/srv/work", "spec.config.sandbox.write[1]", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Write = []string{"/srv/work/b", "/srv"} }},
	"unconfined beyond a root": {"roots=/srv/work", "spec.config.sandbox.unconfined", func(s *harnessv1.RunSpec) { s.Config.Sandbox.Unconfined = true }},
}

// ways are the ways in which a start reaches a gateway.
func ways(t *testing.T, guard *access.Guard, token string, r *harnessv1.StartRunRequest) map[string]error {
	t.Helper()
	conn := dial(t, guard.ServerOptions()...)
	ctx := withToken(t, "Bearer "+token)
	_, unary := harnessv1.NewGatewayServiceClient(conn).StartRun(ctx, r)
	over := map[string]error{"StartRun": unary, "Run": stream(ctx, conn, &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: r}})}
	inside := guard.Confine(dial(t))
	request := httptest.NewRequest(http.MethodPost, "/v1/runs", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		_, over["HTTP"] = harnessv1.NewGatewayServiceClient(inside).StartRun(in.Context(), r)
		over["HTTP stream"] = stream(in.Context(), inside, &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: r}})
	}), nil).ServeHTTP(httptest.NewRecorder(), request)
	return over
}

// stream sends messages on a Run stream and returns how it ends.
func stream(ctx context.Context, conn grpc.ClientConnInterface, messages ...*harnessv1.RunRequest) error {
	s, err := harnessv1.NewGatewayServiceClient(conn).Run(ctx)
	for _, m := range messages {
		if err == nil {
			err = s.Send(m)
		}
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err == nil || errors.Is(err, io.EOF) { // the server has ended the stream; Recv returns the reason
		_, err = s.Recv()
	}
	return err
}

// TestStartNeedsTheRightsOfItsToken over each way, with the field and the missing right.
func TestStartNeedsTheRightsOfItsToken(t *testing.T) {
	for name, c := range starts {
		t.Run(name, func(t *testing.T) {
			file, _, _ := tokens(t, forAll+"\n"+forSome+" * "+c.attribute+"\n")
			guard, r := access.NewGuard(file), &harnessv1.StartRunRequest{Spec: spec(c.change)}
			for way, err := range ways(t, guard, forAll, r) {
				if status.Code(err) == codes.PermissionDenied {
					t.Errorf("a line without attributes over %s: %v", way, err)
				}
			}
			for way, err := range ways(t, guard, forSome, r) {
				refused := status.Code(err) == codes.PermissionDenied && strings.Contains(status.Convert(err).Message(), c.field+": ")
				if refused != (c.field != "") || (c.field == "") != (status.Code(err) != codes.PermissionDenied) {
					t.Errorf("over %s: %v, want %q", way, err, c.field)
				}
			}
		})
	}
}

// TestApprovalNeedsItsRight: as an input, and as a later message of a stream.
func TestApprovalNeedsItsRight(t *testing.T) {
	file, _, _ := tokens(t, forAll+" * may=approve\n"+forSome+" * may=commands,hooks,checks,scripts\n")
	guard := access.NewGuard(file)
	approval := &harnessv1.Approval{CallId: "c", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}
	attach := &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: "r"}}}
	later := &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Approval{Approval: approval}}
	message := &harnessv1.RunRequest{Request: &harnessv1.RunRequest_UserMessage{UserMessage: &harnessv1.UserMessage{}}}
	for token, may := range map[string]bool{forAll: true, forSome: false} {
		conn, ctx := dial(t, guard.ServerOptions()...), withToken(t, "Bearer "+token)
		client := harnessv1.NewGatewayServiceClient(conn)
		_, unary := client.SendInput(ctx, &harnessv1.SendInputRequest{RunId: "r", Input: &harnessv1.SendInputRequest_Approval{Approval: approval}})
		over := map[string]error{"input": unary, "stream": stream(ctx, conn, attach, later)}
		request := httptest.NewRequest(http.MethodPost, "/v1/runs", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		inside := guard.Confine(dial(t))
		guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
			over["HTTP stream"] = stream(in.Context(), inside, attach, later)
		}), nil).ServeHTTP(httptest.NewRecorder(), request)
		for what, err := range over {
			if denied := status.Code(err) == codes.PermissionDenied; denied == may || denied && !strings.Contains(err.Error(), "may=approve") {
				t.Errorf("%s with %s: %v", what, token, err)
			}
		}
		_, unary = client.SendInput(ctx, &harnessv1.SendInputRequest{RunId: "r", Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{}}})
		if streamed := stream(ctx, conn, attach, message); status.Code(unary) == codes.PermissionDenied || status.Code(streamed) == codes.PermissionDenied {
			t.Errorf("a message with %s: %v, %v", token, unary, streamed)
		}
	}
}

// TestWorkspaceIsResolvedBeforeItIsCompared with the roots of a token.
func TestWorkspaceIsResolvedBeforeItIsCompared(t *testing.T) {
	dir := t.TempDir()
	root, other := filepath.Join(dir, "root"), filepath.Join(dir, "other")
	for _, made := range []string{filepath.Join(root, "work"), other} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{filepath.Join(root, "out"): other, filepath.Join(dir, "in"): root} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		root, workspace string
		may             bool
	}{
		{root, filepath.Join(root, "work"), true},
		{root, filepath.Join(root, "new"), true},
		{root, filepath.Join(root, "out"), false},
		{root, filepath.Join(dir, "in", "work"), true},
		{filepath.Join(dir, "in"), filepath.Join(root, "work"), true},
		{filepath.Join(dir, "in"), other, false},
	} {
		file, _, _ := tokens(t, forSome+" * roots="+c.root+"\n")
		_, err := harnessv1.NewGatewayServiceClient(dial(t, access.NewGuard(file).ServerOptions()...)).StartRun(withToken(t, "Bearer "+forSome),
			&harnessv1.StartRunRequest{Spec: spec(func(s *harnessv1.RunSpec) { s.Workspace = c.workspace })})
		if (status.Code(err) != codes.PermissionDenied) != c.may {
			t.Errorf("%s with %s: %v", c.workspace, c.root, err)
		}
	}
}

// TestNameOfTheCallerIsThatOfItsToken, whatever header the caller sets.
func TestNameOfTheCallerIsThatOfItsToken(t *testing.T) {
	file, _, _ := tokens(t, forAll+" * name=nina\n"+forSome+"\n")
	guard := access.NewGuard(file)
	conn, inside := dial(t, guard.ServerOptions()...), guard.Confine(dial(t))
	for token, want := range map[string]string{forAll: "nina", forSome: "token-733b97ce"} {
		var over []string
		list := func(ctx context.Context, conn grpc.ClientConnInterface) {
			r, err := harnessv1.NewGatewayServiceClient(conn).ListPending(ctx, &harnessv1.ListPendingRequest{})
			if err != nil {
				t.Error(err)
			}
			over = append(over, r.GetNextPageToken())
		}
		list(metadata.AppendToOutgoingContext(withToken(t, "Bearer "+token), "harness-caller", "another"), conn)
		request := httptest.NewRequest(http.MethodGet, "/v1/pending", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) { list(in.Context(), inside) }), nil).ServeHTTP(httptest.NewRecorder(), request)
		if !slices.Equal(over, []string{want, want}) {
			t.Errorf("the names are %q, want %s", over, want)
		}
	}
}

// TestNameOfACallerWithoutALine is local on this machine and anonymous elsewhere, whatever
// header the caller sets.
func TestNameOfACallerWithoutALine(t *testing.T) {
	for want, guard := range map[string]*access.Guard{access.Local: access.NewGuard(nil), access.Anonymous: access.OpenGuard()} {
		var over []string
		list := func(ctx context.Context, conn grpc.ClientConnInterface) {
			r, err := harnessv1.NewGatewayServiceClient(conn).ListPending(ctx, &harnessv1.ListPendingRequest{})
			if err != nil {
				t.Error(err)
			}
			over = append(over, r.GetNextPageToken())
		}
		inside := guard.Confine(dial(t))
		list(metadata.AppendToOutgoingContext(t.Context(), "harness-caller", "nina"), dial(t, guard.ServerOptions()...))
		guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) { list(in.Context(), inside) }), nil).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/pending", nil))
		if !slices.Equal(over, []string{want, want}) {
			t.Errorf("the names are %q, want %s", over, want)
		}
	}
	if access.Name(t.Context()) != access.Local {
		t.Error("a caller inside the process is not local")
	}
	file := access.Key(forAll, "")
	r, err := harnessv1.NewGatewayServiceClient(dial(t, access.NewGuard(file).ServerOptions()...)).ListPending(withToken(t, "Bearer "+forAll), &harnessv1.ListPendingRequest{})
	if err != nil || r.GetNextPageToken() != access.Local {
		t.Errorf("the key is %q, %v", r.GetNextPageToken(), err)
	}
}

// TestRightsThatAgree: scripts without providers, and providers of scripts with all rights.
func TestRightsThatAgree(t *testing.T) {
	for _, attributes := range []string{"may=scripts", "providers=script", "providers=openai", "may=scripts providers=openai,replay", "may=none providers=openai"} {
		if file, _, _ := tokens(t, "0123456789abcdef "+attributes+"\n"); file == nil {
			t.Error(attributes)
		}
	}
}

// TestWorkspaceElsewhereIsRefusedInOneLine that names the field, the workspace and the
// folders of the token, whatever the workspace contains.
func TestWorkspaceElsewhereIsRefusedInOneLine(t *testing.T) {
	file, _, _ := tokens(t, forSome+" * roots=/srv/a,/srv/b\n")
	guard := access.NewGuard(file)
	for _, workspace := range []string{"/etc", "", "srv/a", "/srv/a/../c", "/srv/ab", "/x\n\x1b[2J\u202e"} {
		r := &harnessv1.StartRunRequest{Spec: spec(func(s *harnessv1.RunSpec) { s.Workspace = workspace })}
		for way, err := range ways(t, guard, forSome, r) {
			message := status.Convert(err).Message()
			want := "spec.workspace: " + strconv.Quote(workspace) + " is not within the folders of the token: it is for /srv/a, /srv/b"
			if status.Code(err) != codes.PermissionDenied || message != want || content.OneLine(message) != message || fieldOf(err) != "spec.workspace" {
				t.Errorf("%q over %s: %v", workspace, way, err)
			}
		}
	}
}

// fieldOf returns the field of the request in the metadata of a refusal.
func fieldOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()["field"]
		}
	}
	return ""
}

// TestHandlersKnowTheRightToApprove: over gRPC and HTTP, whatever header the caller sets.
func TestHandlersKnowTheRightToApprove(t *testing.T) {
	file, _, _ := tokens(t, forAll+" * may=approve\n"+forSome+" * may=commands\n")
	guard := access.NewGuard(file)
	conn, inside := dial(t, guard.ServerOptions()...), guard.Confine(dial(t))
	for token, want := range map[string]string{forAll: "true", forSome: "false"} {
		over := map[string]string{}
		resume := func(way string, ctx context.Context, conn grpc.ClientConnInterface) {
			r, err := harnessv1.NewGatewayServiceClient(conn).ResumeRun(ctx, &harnessv1.ResumeRunRequest{})
			if err != nil {
				t.Error(err)
			}
			over[way] = r.GetRequestId()
		}
		resume("gRPC", withToken(t, "Bearer "+token), conn)
		request := httptest.NewRequest(http.MethodPost, "/v1/runs/r/resume", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) { resume("HTTP", in.Context(), inside) }), nil).ServeHTTP(httptest.NewRecorder(), request)
		if over["gRPC"] != want || over["HTTP"] != want {
			t.Errorf("%s may approve: %v, want %s", token, over, want)
		}
	}
}

// TestHandlersKnowTheToken and its folders: over gRPC and HTTP, whatever header the caller sets.
func TestHandlersKnowTheToken(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n"+forSome+" team-a runs=3 bytes=7\n"+"0123456789abcdef-roots * roots=/srv,/data/ü\n"+"0123456789abcdef-may * may=commands\n")
	guards := map[string]*access.Guard{"tokens": access.NewGuard(file), "key": access.NewGuard(access.Key("0123456789abcdef-key", "the key")), "open": access.NewGuard(nil), "beyond loopback": access.OpenGuard()}
	for _, c := range []struct {
		guard, token  string
		found, leaves bool
	}{
		{"tokens", forAll, true, true},
		{"tokens", forSome, true, true},
		{"tokens", "0123456789abcdef-roots", true, false},
		{"tokens", "0123456789abcdef-may", true, false},
		{"key", "0123456789abcdef-key", false, false},
		{"open", "any", false, false},
		{"beyond loopback", "any", false, false},
	} {
		for _, claimed := range []string{"", "leaves", "bounded"} {
			if claimed != "" && !c.found {
				continue // it removes rights of the caller alone
			}
			found, leaves, roots, quotas := map[string]bool{}, map[string]bool{}, map[string][]string{}, map[string]access.Quotas{}
			see := func(way string) grpc.UnaryServerInterceptor {
				return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					found[way], leaves[way] = access.Token(ctx)
					roots[way], quotas[way] = access.Roots(ctx), access.StoredQuotas(ctx)
					return next(ctx, req)
				}
			}
			guard := guards[c.guard]
			ctx := withToken(t, "Bearer "+c.token)
			if claimed != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "harness-token", claimed, "harness-quotas", "999,999")
			}
			_, err := harnessv1.NewGatewayServiceClient(dial(t, append(guard.ServerOptions(), grpc.ChainUnaryInterceptor(see("gRPC")))...)).ResumeRun(ctx, &harnessv1.ResumeRunRequest{Namespace: "team-a"})
			if err != nil {
				t.Error(err)
			}
			inside := guard.Confine(dial(t, grpc.ChainUnaryInterceptor(see("HTTP"))))
			request := httptest.NewRequest(http.MethodPost, "/v1/runs/r/resume", nil)
			request.Header.Set("Authorization", "Bearer "+c.token)
			guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
				if _, err := harnessv1.NewGatewayServiceClient(inside).ResumeRun(in.Context(), &harnessv1.ResumeRunRequest{Namespace: "team-a"}); err != nil {
					t.Error(err)
				}
			}), nil).ServeHTTP(httptest.NewRecorder(), request)
			for _, way := range []string{"gRPC", "HTTP"} {
				if found[way] != c.found || leaves[way] != c.leaves {
					t.Errorf("%s, %s, claims %q over %s: got %v, %v, want %v, %v", c.guard, c.token, claimed, way, found[way], leaves[way], c.found, c.leaves)
				}
				want := []string(nil)
				if c.token == "0123456789abcdef-roots" {
					want = []string{"/srv", "/data/ü"}
				}
				wantQuotas := access.Quotas{}
				switch {
				case c.token == forSome:
					wantQuotas = access.Quotas{Runs: 3, Bytes: 7}
				case c.found:
					wantQuotas = access.Quotas{Runs: 1_000, Bytes: 64 << 30}
				}
				if quotas[way] != wantQuotas {
					t.Errorf("%s, %s over %s: %+v, want %+v", c.guard, c.token, way, quotas[way], wantQuotas)
				}
				if !slices.Equal(roots[way], want) {
					t.Errorf("%s, %s over %s: for the folders %q, want %q", c.guard, c.token, way, roots[way], want)
				}
			}
		}
	}
}

// TestWaysOutOfTheSandboxAreKnown: no request has a field with a level or with a way out of the
// sandbox that Leaves does not know. A sub-agent's definition and a policy have none.
func TestWaysOutOfTheSandboxAreKnown(t *testing.T) {
	methods := harnessv1.File_harness_v1_gateway_proto.Services().ByName("GatewayService").Methods()
	found := map[string]bool{}
	for i := range methods.Len() {
		fieldsOf(methods.Get(i).Input(), map[protoreflect.FullName]bool{}, func(f protoreflect.FieldDescriptor) {
			if f.Enum() != nil && f.Enum().FullName() == "harness.v1.SandboxLevel" || strings.Contains(string(f.Name()), "confined") {
				found[string(f.FullName())] = true
			}
		})
	}
	want := []string{"harness.v1.Hook.unconfined", "harness.v1.SandboxConfig.least", "harness.v1.SandboxConfig.level", "harness.v1.SandboxConfig.unconfined"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	within := map[string]bool{}
	for i := range methods.Len() {
		fieldsOf(methods.Get(i).Input(), map[protoreflect.FullName]bool{}, func(f protoreflect.FieldDescriptor) {
			if m := f.Message(); m != nil && (m.FullName() == "harness.v1.SandboxConfig" || m.FullName() == "harness.v1.Hook") {
				within[string(f.FullName())] = true
			}
		})
	}
	if got := slices.Sorted(maps.Keys(within)); !slices.Equal(got, []string{"harness.v1.AgentSpec.hooks", "harness.v1.LoopConfig.sandbox"}) {
		t.Errorf("got %v: Leaves reads two fields", got)
	}
}

// fieldsOf visits the fields of a message and of its fields.
func fieldsOf(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool, visit func(protoreflect.FieldDescriptor)) {
	if seen[m.FullName()] {
		return
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		visit(f)
		if f.Message() != nil {
			fieldsOf(f.Message(), seen, visit)
		}
	}
}
