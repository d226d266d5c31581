package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// The tokens of TestDoorsBetweenTenants.
const (
	ownerToken   = "token-that-has-started-the-run"
	foreignToken = "token-of-another-namespace"
	lesserToken  = "token-of-the-namespace-without-rights"
)

// teamSecret is in the goal of the run.
const teamSecret = "what-only-team-a-knows"

// tenants is a served gateway with a run of team-a, which waits for an approval.
type tenants struct {
	t         *testing.T
	addr      string
	workspace string
	script    string
	tokens    string // the file
	serve     *process
}

// serveTenants starts harness serve with a file of tokens and the run "r" of the owner.
func serveTenants(t *testing.T) *tenants {
	t.Helper()
	d := &tenants{t: t, workspace: t.TempDir()}
	scripts := t.TempDir()
	d.script = write(t, scripts, "s.yaml", `turns:
  - {calls: [{id: w, name: write_file, arguments: {path: a, content: b}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	d.tokens = write(t, t.TempDir(), "tokens", strings.Join([]string{
		ownerToken + " team-a name=owner",
		foreignToken + " team-b name=foreign",
		lesserToken + " team-a name=lesser roots=" + d.workspace + " providers=script may=scripts",
	}, "\n")+"\n")
	d.serve = start(t, environment("OPENAI_API_KEY=none", "OPENAI_BASE_URL=http://127.0.0.1:1"), "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--scripts", scripts, "--tokens", d.tokens)
	eventually(t, "the gateway", func() bool {
		d.serve.mu.Lock()
		defer d.serve.mu.Unlock()
		_, rest, found := strings.Cut(d.serve.stderr.String(), "ready role=gateway addr=")
		line, _, whole := strings.Cut(rest, "\n")
		d.addr = strings.TrimSpace(line)
		return found && whole
	})
	return d
}

// spec is the definition of a run, as JSON.
func (d *tenants) spec(goalOf string) string {
	goal, err := json.Marshal(goal(goalOf))
	if err != nil {
		d.t.Fatal(err)
	}
	return fmt.Sprintf(`{"goal":{"inline":%s},"workspace":%q,"agent":{"model":"script:%s","tools":[`+
		`{"name":"write_file","policy":"TOOL_DECISION_ASK"},{"name":"run_command","policy":"TOOL_DECISION_DENY"}],`+
		`"hooks":[{"id":"h","topic":"HOOK_TOPIC_AFTER_TOOL_CALL","callback":true}]}}`, goal, d.workspace, d.script)
}

// goal is so long that it is stored as a blob.
func goal(of string) string { return of + strings.Repeat(" and more", 20_000) }

// conn returns a connection with a token; empty: none.
func (d *tenants) conn(token string) *grpc.ClientConn {
	d.t.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(access.Bearer(token, true)))
	}
	conn, err := grpc.NewClient(d.addr, options...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// outcome is the answer that a caller gets at a door.
type outcome struct {
	code codes.Code
	text string // everything that it has received
}

// held reports whether the gateway has refused the caller, not the request.
func (o outcome) held() bool {
	return o.code == codes.PermissionDenied || o.code == codes.Unauthenticated
}

// withRun adds the namespace and the run to a request in JSON, where it has these fields.
func withRun(t *testing.T, text, namespace, run string, fields func(name string) bool) string {
	t.Helper()
	request := map[string]any{}
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		t.Fatal(err, text)
	}
	for name, value := range map[string]string{"namespace": namespace, "run_id": run} {
		if fields(name) && value != "" {
			request[name] = value
		}
	}
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// overGRPC sends the messages of an attempt and reads up to what shows how it ends.
func (d *tenants) overGRPC(ctx context.Context, conn *grpc.ClientConn, a attempt, namespace, run string) outcome {
	d.t.Helper()
	method := methodOf(a.rpc)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: method.IsStreamingClient(), ServerStreams: method.IsStreamingServer()},
		"/"+string(method.Parent().FullName())+"/"+a.rpc)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, text := range a.requests() {
		m := dynamicpb.NewMessage(method.Input())
		if method.IsStreamingClient() { // the run is in the first message
			for _, first := range []string{"start", "attach"} {
				inner := map[string]json.RawMessage{}
				if i == 0 && json.Unmarshal([]byte(text), &inner) == nil && inner[first] != nil {
					text = `{"` + first + `":` + withRun(d.t, string(inner[first]), namespace, run, func(string) bool { return true }) + `}`
				}
			}
		} else {
			text = withRun(d.t, text, namespace, run, func(name string) bool { return method.Input().Fields().ByName(protoreflect.Name(name)) != nil })
		}
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			d.t.Fatalf("%s: %v", a.rpc, err)
		}
		if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
			return outcome{code: status.Code(err), text: err.Error()}
		}
	}
	if !method.IsStreamingClient() {
		_ = stream.CloseSend()
	}
	var received strings.Builder
	for {
		m := dynamicpb.NewMessage(method.Output())
		err := stream.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			return outcome{text: received.String()}
		}
		if err != nil {
			return outcome{code: status.Code(err), text: received.String() + err.Error()}
		}
		raw, err := proto.Marshal(m)
		if err != nil {
			d.t.Fatal(err)
		}
		received.Write(raw)
		switch ended := protojson.Format(m); {
		case !method.IsStreamingServer(), strings.Contains(ended, `"caughtUp"`), strings.Contains(ended, `"receipt"`),
			method.IsStreamingClient() && len(a.requests()) == 1: // it is attached
			return outcome{text: received.String()}
		}
	}
}

// methodOf returns a method of the gateway.
func methodOf(rpc string) protoreflect.MethodDescriptor {
	return harnessv1.File_harness_v1_gateway_proto.Services().ByName("GatewayService").Methods().ByName(protoreflect.Name(rpc))
}

// overHTTP sends the request of an attempt and reads up to what shows how it ends.
func (d *tenants) overHTTP(ctx context.Context, token string, a attempt, namespace, run string) outcome {
	d.t.Helper()
	method, path, _ := strings.Cut(a.route, " ")
	path = strings.ReplaceAll(path, "{run_id}", run)
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	body := a.body
	if body != "" && path == "/v1/runs" {
		body = withRun(d.t, body, "", run, func(string) bool { return true })
	}
	if namespace != "" {
		path += mark + "namespace=" + namespace
	}
	return d.do(ctx, token, method, path, body, a.accept)
}

// do sends an HTTP request.
func (d *tenants) do(ctx context.Context, token, method, path, body, accept string) outcome {
	d.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var received bytes.Buffer
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		received.WriteString(line)
		if err != nil || strings.Contains(line, `"caught_up"`) || strings.HasPrefix(line, "event: attached") {
			break
		}
	}
	return outcome{code: codeOf(d.t, resp.StatusCode, received.Bytes()), text: received.String()}
}

// codeOf returns the code of an answer over HTTP.
func codeOf(t *testing.T, status int, body []byte) (code codes.Code) {
	t.Helper()
	if status < http.StatusBadRequest {
		return codes.OK
	}
	problem := struct {
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}{}
	if err := json.Unmarshal(body, &problem); err != nil {
		return codes.Unknown // of /mcp itself
	}
	if err := code.UnmarshalJSON(problem.Error.Code); err != nil {
		t.Errorf("%d: %v", status, err)
	}
	return code
}

// overMCP calls the tool of an attempt.
func (d *tenants) overMCP(ctx context.Context, token string, a attempt, namespace, run string) outcome {
	d.t.Helper()
	arguments := withRun(d.t, a.arguments, namespace, run, func(name string) bool { return name != "run_id" || a.tool != "list_runs" })
	o := d.do(ctx, token, http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, a.tool, arguments),
		"application/json, text/event-stream")
	for _, code := range []codes.Code{codes.PermissionDenied, codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.AlreadyExists} {
		if o.code == codes.OK && strings.Contains(o.text, `"isError":true`) && strings.Contains(o.text, `"text":"`+code.String()+":") {
			o.code = code
		}
	}
	if o.code == codes.OK && (strings.Contains(o.text, `"isError":true`) || strings.Contains(o.text, `"error":{`)) {
		o.code = codes.Unknown
	}
	return o
}

// at returns the outcomes of an attempt, by door.
func (d *tenants) at(token string, a attempt, namespace, run string) map[string]outcome {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), deadline)
	defer cancel()
	got := map[string]outcome{"gRPC": d.overGRPC(ctx, d.conn(token), a, namespace, run)}
	if a.route != "" {
		got["HTTP"] = d.overHTTP(ctx, token, a, namespace, run)
	}
	if a.tool != "" {
		got["MCP"] = d.overMCP(ctx, token, a, namespace, run)
	}
	return got
}

// found returns the run and the prompts and number of runs of its namespace, as the owner reads them, to compare.
func (d *tenants) found() string {
	d.t.Helper()
	client := harnessv1.NewGatewayServiceClient(d.conn(ownerToken))
	run, err := client.GetRun(d.t.Context(), &harnessv1.GetRunRequest{Namespace: "team-a", RunId: "r"})
	if err != nil {
		d.t.Fatal(err)
	}
	prompts, err := client.GetPrompts(d.t.Context(), &harnessv1.GetPromptsRequest{Namespace: "team-a"})
	if err != nil {
		d.t.Fatal(err)
	}
	runs, err := client.ListRuns(d.t.Context(), &harnessv1.ListRunsRequest{Namespace: "team-a", All: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return protojson.Format(run) + protojson.Format(prompts) + fmt.Sprint(len(runs.GetRuns()))
}
