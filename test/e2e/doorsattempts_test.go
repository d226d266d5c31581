package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/docs/openapi"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// attempt is a row of the table: what a caller tries at each door. Namespace and run are added.
type attempt struct {
	// rpc is the method of the gateway, and request its message in JSON; of a Run stream, one a line.
	rpc, request string
	// route is the operation over HTTP, with its body, and the type that the caller accepts.
	route, body, accept string
	// tool is the tool of /mcp, with its arguments.
	tool, arguments string
	// lesserHeld: a token of the namespace without the right may not.
	lesserHeld bool
}

func (a attempt) requests() []string { return strings.Split(a.request, "\n") }

func (a attempt) name() string {
	lines := a.requests()
	return a.rpc + " " + clipped(lines[len(lines)-1])
}

func clipped(text string) string { return text[:min(len(text), 60)] }

// attempts are all rows, of a caller that starts runs with a goal. The last ones end the run.
func (d *tenants) attempts(goalOf string) []attempt {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(goal(teamSecret))))
	body := fmt.Sprintf(`{"goal":"go","workspace":%q,"agent":{"model":"script:%s","tools":[{"name":"run_command","policy":"deny"}]}}`, d.workspace, d.script)
	server := `{"server":{"name":"s","url":"https://tools.example/mcp"}}`
	attach := "{\"attach\":{}}\n"
	const run = "/v1/runs/{run_id}"
	return []attempt{
		{rpc: "GetRun", request: `{}`, route: "GET " + run, tool: "run_status", arguments: `{}`},
		{rpc: "GetState", request: `{}`, route: "GET " + run + "/state"},
		{rpc: "GetConversation", request: `{}`, route: "GET " + run + "/conversation"},
		{rpc: "GetContext", request: `{}`, route: "GET " + run + "/context"},
		{rpc: "GetBlob", request: `{"digest":"` + digest + `"}`, route: "GET " + run + "/blobs/" + digest},
		{rpc: "ListRuns", request: `{}`, route: "GET /v1/runs", tool: "list_runs", arguments: `{}`},
		{rpc: "ListPending", request: `{}`, route: "GET /v1/pending?run_id={run_id}", tool: "list_pending", arguments: `{}`},
		{rpc: "WatchRun", request: `{"until":"WATCH_UNTIL_NOW"}`, route: "GET " + run + "/events?until=now", tool: "wait_run", arguments: `{"seconds":0.2}`},
		{rpc: "WatchRuns", request: `{}`, route: "GET /v1/events"},

		{rpc: "Run", request: `{"attach":{}}`},
		{rpc: "Run", request: `{"attach":{"answers_hooks":true}}`, lesserHeld: true},
		{rpc: "Run", request: `{"start":{"spec":` + d.spec(goalOf) + `}}`, lesserHeld: true}, // with a hook that its client answers
		{rpc: "StartRun", request: `{"spec":` + strings.Replace(d.spec(goalOf), "run_command", "http_request", 1) + `}`, lesserHeld: true,
			tool: "start_run", arguments: fmt.Sprintf(`{"goal":"go","workspace":%q,"model":"script:%s"}`, d.workspace, d.script)}, // may use run_command
		{rpc: "Run", request: attach + `{"hook_answer":{"idempotency_key":"k","verdict":{}}}`},
		{rpc: "Run", request: attach + `{"approval":{"call_id":"w","decision":"APPROVAL_DECISION_ONCE"}}`, lesserHeld: true},
		{rpc: "SendInput", request: `{"approval":{"call_id":"w","decision":"APPROVAL_DECISION_DENY"}}`, lesserHeld: true,
			route: "POST " + run + "/approvals", body: `{"call_id":"w","decision":"deny"}`, tool: "answer", arguments: `{"call_id":"w","decision":"deny"}`},
		{rpc: "SendInput", request: `{"approval":{"call_id":"w","decision":"APPROVAL_DECISION_ONCE"}}`, lesserHeld: true,
			route: "POST " + run + "/approvals", body: `{"call_id":"w","decision":"once"}`, tool: "answer", arguments: `{"call_id":"w","decision":"once"}`},
		{rpc: "SendInput", request: `{"model_change":{"model":"openai:gpt-5"}}`, lesserHeld: true, route: "POST " + run + "/model", body: `{"model":"openai:gpt-5"}`},
		{rpc: "ResumeRun", request: `{"model":"openai:gpt-5"}`, lesserHeld: true, route: "POST " + run + "/resume", body: `{"model":"openai:gpt-5"}`},
		{rpc: "Run", request: attach + `{"model_change":{"model":"openai:gpt-5"}}`, lesserHeld: true},
		{rpc: "Run", request: attach + `{"resume":{"model":"openai:gpt-5"}}`, lesserHeld: true},
		{rpc: "SetPrompt", request: `{"id":"healing","text":"x"}`, lesserHeld: true, route: "PUT /v1/prompts/healing", body: `{"text":"x"}`},
		{rpc: "SetPrompt", request: `{"id":"healing"}`, lesserHeld: true, route: "DELETE /v1/prompts/healing"},
		{rpc: "ResetProfile", request: `{"profile":"` + d.workspace + `"}`, lesserHeld: true, route: "DELETE /v1/profile?profile=" + d.workspace},
		{rpc: "StartSignIn", request: `{"subject":` + server + `,"redirect_uri":"http://127.0.0.1:1/x"}`, lesserHeld: true,
			route: "POST /v1/sign-ins/start", body: `{"subject":` + server + `,"redirect_uri":"http://127.0.0.1:1/x"}`},
		{rpc: "FinishSignIn", request: `{"returned":{"state":"s","code":"c"}}`, lesserHeld: true, route: "POST /v1/sign-ins/finish", body: `{"returned":{"state":"s","code":"c"}}`},
		{rpc: "SignOut", request: `{"subject":` + server + `}`, lesserHeld: true, route: "POST /v1/sign-ins/end", body: `{"subject":` + server + `}`},
		{rpc: "GetSignIn", request: `{"subject":` + server + `}`, route: "POST /v1/sign-ins/get", body: `{"subject":` + server + `}`},
		{rpc: "GetPrompts", request: `{}`, route: "GET /v1/prompts"},
		{rpc: "GetProfile", request: `{"profile":"` + d.workspace + `"}`, route: "GET /v1/profile?profile=" + d.workspace},

		{rpc: "StartRun", request: `{"spec":` + d.spec(goalOf) + `}`, route: "POST /v1/runs", body: body},
		{rpc: "Run", request: `{"attach":{"client_tools":[{"name":"own","description":"d","parameters_schema":"{\"type\":\"object\"}"}]}}`},
		{rpc: "SendInput", request: `{"user_message":{"content":{"inline":"m"}}}`, route: "POST " + run + "/messages", body: `{"content":"m"}`, tool: "continue_run", arguments: `{"message":"m"}`},
		{rpc: "Run", request: attach + `{"user_message":{"content":{"inline":"m"}}}`},
		{rpc: "SendInput", request: `{"tool_answer":{"call_id":"w","result":{"inline":"x"}}}`, route: "POST " + run + "/answers", body: `{"call_id":"w","content":"x"}`, tool: "answer", arguments: `{"call_id":"w","text":"x"}`},
		{rpc: "Run", request: attach + `{"tool_answer":{"call_id":"w","result":{"inline":"x"}}}`},
		{rpc: "SendInput", request: `{"mode_change":{"mode":"plan"}}`, route: "POST " + run + "/mode", body: `{"mode":"plan"}`},
		{rpc: "Run", request: attach + `{"mode_change":{"mode":"execute"}}`},
		{rpc: "SendInput", request: `{"replan":{"reason":"x"}}`, route: "POST " + run + "/replan", body: `{"reason":"x"}`},
		{rpc: "Run", request: attach + `{"replan":{"reason":"x"}}`},
		{rpc: "InterruptRun", request: `{}`, route: "POST " + run + "/interrupt"},
		{rpc: "Run", request: attach + `{"interrupt":{}}`},
		{rpc: "ResumeRun", request: `{}`, route: "POST " + run + "/resume"},
		{rpc: "Run", request: attach + `{"resume":{}}`},
		{rpc: "CancelRun", request: `{}`, route: "POST " + run + "/cancel", tool: "cancel_run", arguments: `{}`},
		{rpc: "Run", request: attach + `{"cancel":{}}`},
		{rpc: "SendInput", request: `{"feedback":{"thumb":"THUMB_UP"}}`, route: "POST " + run + "/feedback", body: `{"thumb":"up"}`},
		{rpc: "DeleteRun", request: `{}`, route: "DELETE " + run},
	}
}

// missing returns the methods, inputs, routes and tools that no attempt covers.
func (d *tenants) missing(all []attempt) []string {
	d.t.Helper()
	covered := map[string]bool{}
	for _, a := range all {
		covered[a.rpc] = true
		for _, text := range a.requests() {
			message := map[string]json.RawMessage{}
			if err := json.Unmarshal([]byte(text), &message); err != nil {
				d.t.Fatal(err)
			}
			for field := range message {
				covered[a.rpc+" "+field] = true
			}
		}
		route, _, _ := strings.Cut(a.route, "?")
		covered[route], covered["/mcp "+a.tool] = true, true
	}
	var missing []string
	need := func(what string) {
		if !covered[what] {
			missing = append(missing, what)
		}
	}
	methods := harnessv1.File_harness_v1_gateway_proto.Services().ByName("GatewayService").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		need(string(method.Name()))
		for _, oneof := range []protoreflect.Name{"request", "input"} {
			if inputs := method.Input().Oneofs().ByName(oneof); inputs != nil {
				for j := range inputs.Fields().Len() {
					need(string(method.Name()) + " " + string(inputs.Fields().Get(j).Name()))
				}
			}
		}
	}
	document := struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}{}
	if err := json.Unmarshal(openapi.Document, &document); err != nil {
		d.t.Fatal(err)
	}
	for path, operations := range document.Paths {
		for method := range operations {
			method = strings.ToUpper(method)
			if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch}, method) || path == "/" || path == "/openapi.json" {
				continue
			}
			known := slices.ContainsFunc(slices.Collect(maps.Keys(covered)), func(route string) bool { return sameRoute(route, method+" "+path) })
			if !known {
				missing = append(missing, method+" "+path)
			}
		}
	}
	tools := d.do(context.Background(), ownerToken, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "application/json, text/event-stream")
	parts := strings.Split(tools.text, `"name":"`)
	if len(parts) < 2 {
		d.t.Fatalf("/mcp lists no tools: %s", tools.text)
	}
	for _, part := range parts[1:] {
		tool, _, _ := strings.Cut(part, `"`)
		need("/mcp " + tool)
	}
	return missing
}

// sameRoute reports whether a route of an attempt is an operation, whose path may have parameters.
func sameRoute(route, operation string) bool {
	parts, of := strings.Split(route, "/"), strings.Split(operation, "/")
	return slices.EqualFunc(parts, of, func(part, pattern string) bool { return part == pattern || strings.HasPrefix(pattern, "{") })
}

// TestDoorsBetweenTenants tries each method of the gateway, each route and each tool of /mcp on a run
// of team-a: without a token, with one of another namespace that names team-a, with the same one that names its own
// namespace and the run's id, and with one of team-a that has fewer rights. Nothing changes the run, and no part of it is
// in an answer. The owner's attempts show that the requests are valid.
func TestDoorsBetweenTenants(t *testing.T) {
	t.Parallel()
	d := serveTenants(t)
	client := harnessv1.NewGatewayServiceClient(d.conn(ownerToken))
	for _, run := range []string{"r", "of-the-owner"} {
		started := d.at(ownerToken, attempt{rpc: "StartRun", request: `{"spec":` + d.spec(teamSecret) + `}`}, "team-a", run)["gRPC"]
		if started.code != codes.OK {
			t.Fatal(started)
		}
		eventually(t, "the approval", func() bool {
			pending, err := client.ListPending(t.Context(), &harnessv1.ListPendingRequest{Namespace: "team-a", RunId: run})
			return err == nil && len(pending.GetPending()) == 1
		})
	}
	before, all := d.found(), d.attempts(teamSecret)
	if missing := d.missing(all); len(missing) > 0 {
		t.Errorf("no row tries %q", missing)
	}
	unchanged := func(what string) {
		t.Helper()
		if after := d.found(); after != before {
			t.Fatalf("%s has changed the run:\n%s\n%s", what, before, after)
		}
	}
	for _, a := range all {
		for door, got := range d.at("", a, "team-a", "r") {
			if got.code != codes.Unauthenticated {
				t.Errorf("%s of no token over %s: %v %s", a.name(), door, got.code, clipped(got.text))
			}
		}
		for door, got := range d.at(foreignToken, a, "team-a", "r") {
			if got.code != codes.PermissionDenied || strings.Contains(got.text, teamSecret) {
				t.Errorf("%s of another namespace over %s: %v %s", a.name(), door, got.code, clipped(got.text))
			}
		}
	}
	unchanged("another namespace")
	for _, namespace := range []string{"team-b", "*"} {
		for _, a := range d.attempts("another goal") {
			for door, got := range d.at(foreignToken, a, namespace, "r") {
				if strings.Contains(got.text, teamSecret) || strings.Contains(got.text, `"team-a"`) || strings.Contains(got.text, "name:owner") {
					t.Errorf("%s in namespace %s over %s shows the run: %v %s", a.name(), namespace, door, got.code, clipped(got.text))
				}
			}
		}
		unchanged("the same id in namespace " + namespace)
	}
	for _, a := range all {
		if !a.lesserHeld {
			continue
		}
		for door, got := range d.at(lesserToken, a, "team-a", "r") {
			if got.code != codes.PermissionDenied {
				t.Errorf("%s of a token with fewer rights over %s: %v %s", a.name(), door, got.code, clipped(got.text))
			}
		}
	}
	unchanged("a token with fewer rights")
	for run, token := range map[string]string{"r": lesserToken, "of-the-owner": ownerToken} {
		for _, a := range all {
			if a.lesserHeld && token == lesserToken {
				continue
			}
			for door, got := range d.at(token, a, "team-a", run) {
				if got.held() || got.code == codes.InvalidArgument {
					t.Errorf("%s of %s over %s: %v %s", a.name(), token, door, got.code, clipped(got.text))
				}
			}
		}
	}
}
