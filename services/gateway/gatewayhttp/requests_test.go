package gatewayhttp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
	"github.com/harnessmesh/harnessmesh/test/kit/openapitest"
)

func TestRoutesAndDescriptionAreEqual(t *testing.T) {
	routes, described := gatewayhttp.Routes(), openapitest.Load(t).Operations()
	slices.Sort(routes)
	slices.Sort(described)
	if !slices.Equal(routes, described) {
		t.Errorf("served\n%s\ndescribed\n%s", strings.Join(routes, "\n"), strings.Join(described, "\n"))
	}
}

const small = `"goal":"do it","workspace":"/work","agent":{"model":"script:x"}`

func TestAnIdempotencyKeyStartsOneRun(t *testing.T) {
	b := newBed(t)
	first := b.post("/v1/runs", "{"+small+"}", "Idempotency-Key", "k1")
	again := b.post("/v1/runs", "{"+small+`,"request_id":"k1"}`)
	if first.status != http.StatusCreated || again.status != http.StatusOK || again.object(t)["existed"] != true {
		t.Fatalf("%+v\n%+v", first, again)
	}
	id := first.object(t)["run_id"].(string)
	if again.object(t)["run_id"] != id || first.header.Get("Location") != "/v1/runs/"+id+"?namespace="+b.namespace {
		t.Errorf("%+v\n%+v", first, again)
	}
	if p := b.post("/v1/runs", "{"+small+`,"request_id":"k1"}`, "Idempotency-Key", "k2").problem(t); p["field"] != "request_id" {
		t.Errorf("%v", p)
	}
}

func TestTheNamespaceMayBeInTheBody(t *testing.T) {
	b := newBed(t)
	r, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.http.URL+"/v1/runs", strings.NewReader("{"+small+`,"run_id":"r","namespace":"`+b.namespace+`"}`))
	b.must(err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := b.http.Client().Do(r)
	b.must(err)
	b.must(resp.Body.Close())
	if a := b.get("/v1/runs/r"); resp.StatusCode != http.StatusCreated || a.status != http.StatusOK {
		t.Errorf("%d, %+v", resp.StatusCode, a)
	}
}

func TestAStartCanReturnTheStreamOfEvents(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1).end("Done.")
	body := "{" + small + `,"run_id":"r"}`
	a := b.post("/v1/runs", body, "Accept", "text/event-stream")
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, "event: attached\n") || !strings.Contains(a.body, "event: result\n") {
		t.Errorf("%+v", a)
	}
	if lines := b.post("/v1/runs?names=seed", body, "Accept", "application/x-ndjson"); !strings.Contains(lines.body, `{"type":"harness_completed"`) {
		t.Errorf("%+v", lines)
	}
}

func TestStatusOfARun(t *testing.T) {
	b := newBed(t)
	h := b.started("r").works(1)
	works := b.get("/v1/runs/r").object(t)
	if works["status"] != "RUNNING" || works["reason"].(map[string]any)["kind"] != "" || works["run"].(map[string]any)["goal"] != "do it" {
		t.Errorf("%v", works)
	}
	h.end("Done.")
	done := b.get("/v1/runs/r?spec=true").object(t)
	spec := done["spec"].(map[string]any)
	if done["status"] != "DONE" || done["answer"] != "Done." || spec["workspace"] != "/work" || works["spec"] != nil {
		t.Errorf("%v", done)
	}
	b.listed("/v1/runs?status=done", "runs", 1)
	page := b.get("/v1/runs?status=done&page_size=1").object(t)
	if runs := page["runs"].([]any); len(runs) != 1 || runs[0].(map[string]any)["run_id"] != "r" || page["next_page_token"] != "" {
		t.Errorf("%v", page)
	}
	if a := b.do(http.MethodHead, "/v1/runs/r", ""); a.status != http.StatusOK || a.body != "" {
		t.Errorf("%+v", a)
	}
	if a := b.do(http.MethodDelete, "/v1/runs/r", ""); a.status != http.StatusOK || a.object(t)["existed"] != false {
		t.Errorf("%+v", a)
	}
	if a := b.get("/v1/runs/r"); a.status != http.StatusBadRequest || a.problem(t)["reason"] != "RUN_EXPIRED" {
		t.Errorf("%+v", a)
	}
}

func TestPendingCallsAreListedAndGetAnswers(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1).park("approval", approvalCall("c1"))
	pending := b.listed("/v1/pending", "pending", 1)
	if len(pending) != 1 || pending[0].(map[string]any)["call"].(map[string]any)["call_id"] != "c1" {
		t.Fatalf("%v", pending)
	}
	if a := b.post("/v1/runs/r/approvals", `{"call_id":"c1","decision":"once"}`, "Idempotency-Key", "a1"); a.status != http.StatusAccepted || a.object(t)["request_id"] != "a1" {
		t.Errorf("%+v", a)
	}
	if a := b.post("/v1/runs/r/approvals", `{"call_id":"c1","decision":"ONCE","request_id":"a1"}`); a.status != http.StatusOK || a.object(t)["existed"] != true {
		t.Errorf("sent again: %+v", a)
	}
	if a := b.post("/v1/runs/r/approvals", `{"call_id":"c1","decision":"deny"}`); a.status != http.StatusConflict || a.problem(t)["reason"] != "CALL_ANSWERED" {
		t.Errorf("a second answer: %+v", a)
	}
	if waiting := b.get("/v1/runs/r").object(t)["waiting"].([]any); len(waiting) != 1 || waiting[0].(map[string]any)["kind"] != "approval" {
		t.Errorf("%v", waiting)
	}
}

func TestEveryInputIsAccepted(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1)
	for i, c := range []struct {
		path, body, kind string
		status           int
	}{
		{"messages", `{"content":"Leave the API as it is."}`, "user_message", 202},
		{"mode", `{"mode":"plan"}`, "mode_change", 202},
		{"replan", ``, "replan", 202},
		{"replan", `{"reason":"The deadline moved."}`, "replan", 202},
		{"resume", `{"budgets":{"turns":80,"wall_clock":"30m"}}`, "resume", 202},
		{"interrupt", ``, "interrupt", 202},
		{"cancel", `{"reason":"Enough."}`, "cancel", 202},
	} {
		if a := b.post("/v1/runs/r/"+c.path, c.body); a.status != c.status {
			t.Errorf("%s: %+v", c.path, a)
		}
		waiting := b.get("/v1/runs/r").object(t)["waiting"].([]any)
		if len(waiting) != i+1 || waiting[i].(map[string]any)["kind"] != c.kind {
			t.Errorf("%s: %v", c.path, waiting)
		}
	}
	b.started("s").works(1)
	if a := b.post("/v1/runs/s/feedback", `{"thumb":"up"}`); a.status != http.StatusBadRequest || a.problem(t)["reason"] != "RUN_ACTIVE" {
		t.Errorf("feedback on a run that works: %+v", a)
	}
	if a := b.post("/v1/runs/s/feedback", `{}`); a.status != http.StatusBadRequest || a.problem(t)["field"] != "thumb" {
		t.Errorf("feedback without a thumb: %+v", a)
	}
	b.started("e").works(1).end("done")
	if a := b.post("/v1/runs/e/feedback", `{"thumb":"down"}`); a.status != http.StatusAccepted {
		t.Errorf("feedback on a run that has ended: %+v", a)
	}
	if a := b.post("/v1/runs/s/resume", ``); a.status != http.StatusOK || a.object(t)["already_running"] != true {
		t.Errorf("a resume of a running run: %+v", a)
	}
	b.started("q").park("question", &harnessv1.PendingCall{
		CallId: "c1", Tool: "ask_user", Kind: "question", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
	})
	if a := b.post("/v1/runs/q/answers", `{"call_id":"c1","content":"The blue one.","is_error":false}`); a.status != http.StatusAccepted {
		t.Errorf("%+v", a)
	}
}

func TestReadStateConversationAndBlobs(t *testing.T) {
	b := newBed(t)
	h := b.started("r").works(1)
	text := strings.Repeat("<b>bold</b>\n", 20_000)
	ref, err := shared.PutBlob(b.ctx, h.run, []byte(text))
	b.must(err)
	sum := sha256.Sum256([]byte(text))
	a := b.get("/v1/runs/r/blobs/" + hex.EncodeToString(sum[:]))
	if a.body != text || a.header.Get("Content-Type") != "application/octet-stream" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %d bytes", a.status, a.header, len(a.body))
	}
	if state := b.get("/v1/runs/r/state?version=1").object(t); state["version"] != 1.0 || state["snapshot"].(map[string]any)["goal_preview"] != "do it" {
		t.Errorf("%v", state)
	}
	if messages := b.get("/v1/runs/r/conversation").object(t)["messages"]; fmt.Sprint(messages) != "[]" {
		t.Errorf("%v", messages)
	}
	// The result includes a text that is stored as a blob.
	h.step("end", func(s *harnessv1.Step) {
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_DONE
		s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Answer: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: proto.CloneOf(ref)}},
		}}
	})
	if got := b.get("/v1/runs/r").object(t)["answer"]; got != text {
		t.Errorf("the answer is %.80v", got)
	}
}

// TestContextInPages reads the view of a conversation of three messages.
func TestContextInPages(t *testing.T) {
	b := newBed(t)
	h := b.started("r")
	said := func(id uint64, role harnessv1.Role, text string) *harnessv1.Message {
		return &harnessv1.Message{Id: id, Role: role, Content: content.Inline(text)}
	}
	h.append(&harnessv1.Record{
		Body:     &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1}}}},
		Appended: []*harnessv1.Message{said(1, harnessv1.Role_ROLE_SYSTEM, "You are an agent."), said(2, harnessv1.Role_ROLE_USER, "Go."), said(3, harnessv1.Role_ROLE_ASSISTANT, "Gone.")},
	})
	var texts []any
	path := "/v1/runs/r/context?version=2&page_size=2"
	for token := "-"; token != ""; path = "/v1/runs/r/context?page_size=2&page_token=" + token {
		page := b.get(path).object(t)
		if page["version"] != 2.0 || page["total_items"] != 3.0 || page["model"] != "script:x" || page["digest_matches"] != nil {
			t.Fatalf("%v", page)
		}
		for _, i := range page["items"].([]any) {
			texts = append(texts, i.(map[string]any)["text"])
		}
		token = page["next_page_token"].(string)
	}
	if fmt.Sprint(texts) != "[You are an agent. Go. Gone.]" {
		t.Errorf("%v", texts)
	}
}

// An error is one line with the correction, and names the field as the client wrote
// it.
func TestBadInput(t *testing.T) {
	b := newBed(t)
	b.started("r").works(1)
	b.started("done").end("Done.")
	deep := strings.Repeat("[", 20_000)
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		field, message     string
	}{
		{"GET", "/v1/runs/r/context?version=99", "", nil, 400, "version", "version: 99: run " + b.namespace + "/r has versions up to 2"},
		{"GET", "/v1/runs/r/context?page_size=1001", "", nil, 400, "page_size", "page_size: 1001: must be from 1 to 1000"},
		{"GET", "/v1/runs/r/context?page_token=x", "", nil, 400, "page_token", "page_token: is not a page token of this context; leave it empty for the first page"},
		{"GET", "/v1/runs/none/context", "", nil, 404, "", "run " + b.namespace + "/none not found"},
		{"POST", "/v1/runs", "{\n  \"goal\": \"x\",\n  oops\n}", nil, 400, "body", "body: 3:3: invalid character 'o' looking for beginning of object key string"},
		{"POST", "/v1/runs", `{"goal":"x"`, nil, 400, "body", "body: 1:11: unexpected end of JSON input"},
		{"POST", "/v1/runs", `[]`, nil, 400, "body", "body: expected an object: {…}"},
		{"POST", "/v1/runs", deep, nil, 400, "body", "body: 1:10001: invalid character '[' exceeded max depth"},
		{"POST", "/v1/runs", "{\"goal\":\"\xff\"}", nil, 400, "body", "body: must be UTF-8"},
		{"POST", "/v1/runs", ``, []string{"Content-Type", "application/json"}, 400, "body", "body: 1:1: unexpected end of JSON input"},
		{"POST", "/v1/runs", `{}`, []string{"Content-Type", "text/yaml"}, 415, "Content-Type", `Content-Type: "text/yaml": expected application/json`},
		{"POST", "/v1/runs", `{}`, []string{"Content-Type", ""}, 415, "Content-Type", `Content-Type: "": expected application/json`},
		{"POST", "/v1/runs", `{` + small + `}`, []string{"Accept", "text/html"}, 406, "Accept", `Accept: "text/html": there is application/json, text/event-stream, application/x-ndjson`},
		{"POST", "/v1/runs", `{"goal":"a","goal":"b"}`, nil, 400, "goal", "goal: duplicate field"},
		{"POST", "/v1/runs", `{"gaol":"a"}`, nil, 400, "gaol", "gaol: unknown field; expected one of agent, client_tools, config, contract, goal, graph, media, namespace, output_schema, request_id, run_id, task, workflow, workspace"},
		{"POST", "/v1/runs", `{"workSpace":"a"}`, nil, 400, "workSpace", "workSpace: unknown field; did you mean workspace?"},
		{"POST", "/v1/runs", `{"goal":""}`, nil, 400, "goal", "goal: must not be empty"},
		{"POST", "/v1/runs", `{"goal":7}`, nil, 400, "goal", "goal: expected a text in quotes"},
		{"POST", "/v1/runs", `{"goal":"x","agent":[]}`, nil, 400, "agent", "agent: expected an object: {…}"},
		{"POST", "/v1/runs", `{"goal":"x","config":{"context":{"strategies":["FORGET"]}}}`, nil, 400, "config.context.strategies[0]",
			`config.context.strategies[0]: "FORGET": expected one of CLEAR, EXTERNALIZE, SUMMARIZE, DROP`},
		{"POST", "/v1/runs", `{"goal":"x","agent":{"tools":[{"name":"a","policy":"alow"}]}}`, nil, 400, "agent.tools[0].policy", `agent.tools[0].policy: "alow": expected one of ALLOW, ASK, DENY`},
		{"POST", "/v1/runs", `{"goal":"x","agent":{"tools":[{"name":"a","polcy":"allow"}]}}`, nil, 400, "agent.tools[0].polcy", "agent.tools[0].polcy: unknown field; did you mean policy?"},
		{"POST", "/v1/runs", `{"goal":"x","config":{"budgets":{"turns":-1}}}`, nil, 400, "config.budgets.turns", "config.budgets.turns: -1: expected a whole number from 0 to 4294967295"},
		{"POST", "/v1/runs", `{"goal":"x","config":{"budgets":{"wall_clock":"soon"}}}`, nil, 400, "config.budgets.wall_clock", `config.budgets.wall_clock: "soon": expected a duration such as "90s" or "1h30m"`},
		{"POST", "/v1/runs", `{"goal":"x","workspace":"/w","agent":{"model":"script:x","budgets":{"turns":0}}}`, nil, 400, "agent.budgets.turns", "agent.budgets.turns: must be at least 1"},
		{"POST", "/v1/runs", `{"goal":"x","agent":{"budgets":{"turns":1}},"config":{"budgets":{"turns":2}}}`, nil, 400, "agent.budgets", "agent.budgets: also set in config.budgets: set one of them"},
		{"POST", "/v1/runs?namespace=a", `{"goal":"x","namespace":"b"}`, nil, 400, "namespace", `namespace: "b" differs from the namespace of the address, which is "a": set one of them`},
		{"POST", "/v1/runs", `{` + small + `,"run_id":"a b"}`, nil, 400, "run_id", `run_id: "a b": must match [A-Za-z0-9_-]{1,64}`},
		{"POST", "/v1/runs", `{` + small + `,"workflow":["turn"]}`, nil, 400, "workflow", "workflow: must begin with repair"},
		{"POST", "/v1/runs", `{` + small + `,"goal2":"` + strings.Repeat("x", 33<<20) + `"}`, nil, 413, "", "the body is larger than 33554432 bytes"},
		{"POST", "/v1/runs", `{"goal":"` + strings.Repeat("x", 2<<20) + `","workspace":"/w","agent":{"model":"script:x"}}`, nil, 413, "goal", ""},
		{"POST", "/v1/runs?until=later", `{}`, nil, 400, "until", `until: "later": expected end, rest or now`},
		{"GET", "/v1/runs/none", ``, nil, 404, "", ""},
		{"GET", "/v1/runs/none/events", ``, nil, 404, "", ""},
		{"GET", "/v1/runs/r/events", ``, []string{"Last-Event-ID", "yesterday"}, 400, "Last-Event-ID", `Last-Event-ID: "yesterday": expected the id of an event, such as 14-0, or a version`},
		{"GET", "/v1/runs/r/events?after=-1", ``, nil, 400, "after", `after: "-1": expected the id of an event, such as 14-0, or a version`},
		{"GET", "/v1/runs/r/events?names=pet", ``, nil, 400, "names", `names: "pet": expected mesh or seed`},
		{"GET", "/v1/runs/r/events", ``, []string{"Accept", "application/json"}, 406, "Accept", `Accept: "application/json": there is text/event-stream, application/x-ndjson`},
		{"GET", "/v1/runs/r?spec=yes", ``, nil, 400, "spec", `spec: "yes": expected true or false`},
		{"GET", "/v1/runs?limit=3", ``, nil, 400, "limit", "limit: unknown parameter; expected one of namespace, page_size, page_token, status"},
		{"GET", "/v1/runs?page_size=3&page_size=4", ``, nil, 400, "page_size", "page_size: duplicate parameter"},
		{"GET", "/v1/runs?page_size=5000", ``, nil, 400, "page_size", "page_size: 5000: must be from 1 to 1000"},
		{"GET", "/v1/runs?status=asleep", ``, nil, 400, "status", `status: "asleep": expected running, parked, done, stalled, failed or cancelled, separated by commas`},
		{"GET", "/v1/runs/r/blobs/abc", ``, nil, 400, "digest", "digest: must be 64 lower-case hexadecimal digits"},
		{"GET", "/v1/runs/r/state?version=99", ``, nil, 404, "", ""},
		{"POST", "/v1/runs/r/messages", `{"content":" "}`, nil, 400, "content", "content: must not be empty"},
		{"POST", "/v1/runs/r/messages", `{"media":[{"data":"~"}]}`, nil, 400, "media[0].data", `media[0].data: "~": expected base64`},
		{"POST", "/v1/runs/r/messages", `{"media":[{"data":"dGV4dA=="}]}`, nil, 400, "media[0].data", "media[0].data: unknown type; expected a PNG, JPEG, GIF, WebP or PDF file"},
		{"POST", "/v1/runs", `{"goal":"x","workspace":"/w","media":[{"data":"dGV4dA=="}]}`, nil, 400, "media[0].data", "media[0].data: unknown type; expected a PNG, JPEG, GIF, WebP or PDF file"},
		{"POST", "/v1/runs/r/messages", ``, nil, 415, "Content-Type", `Content-Type: "": expected application/json`},
		{"POST", "/v1/runs/r/messages", `{"text":"hello"}`, nil, 400, "text", "text: unknown field; expected one of content, media, request_id"},
		{"POST", "/v1/runs/r/approvals", `{"call_id":"c9","decision":"perhaps"}`, nil, 400, "decision", `decision: "perhaps": expected one of ONCE, RUN, DENY`},
		{"POST", "/v1/runs/r/approvals", `{"call_id":"c9"}`, nil, 400, "decision", "decision: must be ONCE, RUN or DENY"},
		{"POST", "/v1/runs/r/approvals", `{"call_id":"c9","decision":"once"}`, nil, 400, "", ""},
		{"POST", "/v1/runs/r/answers", `{"content":"x"}`, nil, 400, "call_id", "call_id: must not be empty"},
		{"POST", "/v1/runs/r/mode", `{"mode":""}`, nil, 400, "mode", "mode: must not be empty"},
		{"POST", "/v1/runs/done/resume", ``, nil, 400, "", ""},
		{"DELETE", "/v1/runs/r", ``, nil, 400, "", ""},
		{"PUT", "/v1/runs", `{}`, nil, 405, "", "PUT is not supported here: expected one of GET, HEAD, OPTIONS, POST"},
		{"HEAD", "/v1/runs/r/events", ``, nil, 405, "", ""},
		{"GET", "/v2/runs", ``, nil, 404, "", "there is nothing at /v2/runs: GET /openapi.json lists what there is"},
	} {
		header := c.header
		if c.body == "" && header == nil {
			header = []string{"Accept", "*/*"}
		}
		a := b.do(c.method, c.path, c.body, header...)
		what := fmt.Sprintf("%s %s %.120s", c.method, c.path, c.body)
		if a.status != c.status {
			t.Errorf("%s: %d %s, want %d", what, a.status, a.body, c.status)
			continue
		}
		if c.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", what)
		}
		if c.method == http.MethodHead {
			continue
		}
		p := a.problem(t)
		message := p["message"].(string)
		if p["field"] != c.field || c.message != "" && message != c.message || message == "" || strings.Contains(message, "spec.") || strings.Contains(message, "\n") {
			t.Errorf("%s:\n got %q %q\nwant %q %q", what, p["field"], message, c.field, c.message)
		}
	}
}

// Codes have the statuses that google.rpc.Code names, except for requests that are too
// large.
func TestEveryCodeHasItsStatus(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.Canceled: 499, codes.Unknown: 500, codes.InvalidArgument: 400, codes.DeadlineExceeded: 504, codes.NotFound: 404,
		codes.AlreadyExists: 409, codes.PermissionDenied: 403, codes.ResourceExhausted: 429, codes.FailedPrecondition: 400,
		codes.Aborted: 409, codes.OutOfRange: 400, codes.Unimplemented: 501, codes.Internal: 500, codes.Unavailable: 503,
		codes.DataLoss: 500, codes.Unauthenticated: 401,
	} {
		w := httptest.NewRecorder()
		gatewayhttp.WriteError(w, status.Error(code, "no"))
		if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == 503) {
			t.Errorf("%s: %d %v", code, w.Code, w.Header())
		}
		if code == codes.ResourceExhausted {
			w := httptest.NewRecorder()
			gatewayhttp.WriteError(w, fault.New(code, harnessv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, "no", "retry_after", "7"))
			if w.Code != want || w.Header().Get("Retry-After") != "7" {
				t.Errorf("of a quota by the minute: %d %v", w.Code, w.Header())
			}
		}
		if name := "\"code\":\"" + strings.ToUpper(strings.ReplaceAll(snake(code), " ", "_")) + "\""; !strings.Contains(w.Body.String(), name) {
			t.Errorf("%s: %s has no %s", code, w.Body, name)
		}
	}
	w := httptest.NewRecorder()
	gatewayhttp.WriteError(w, errors.New("password hunter2"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// snake returns the name of a code in snake case, with google.rpc.Code's spelling of
// Canceled.
func snake(c codes.Code) string {
	if c == codes.Canceled {
		return "cancelled"
	}
	return regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(c.String(), "$1 $2")
}
