package mesh

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const browsed = `turns:
  - {calls: [{name: web_fetch, arguments: {url: "http://HOST/first"}}]}
  - {calls: [{name: web_fetch, arguments: {url: "http://HOST/second"}}, {name: http_request, arguments: {url: "http://HOST/third"}}]}
  - {calls: [{name: http_request, arguments: {url: "http://HOST/fourth", method: POST, body: text}}]}
  - {calls: [{name: calculate, arguments: {expression: 0.1 + 0.2}}, {name: web_search, arguments: {query: x}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemWebToolsAskOnceForAHost: the first page of a host asks, other reads of it do not, a request
// that writes asks by itself. The credential reaches the host and is nowhere in the record.
func TestSystemWebToolsAskOnceForAHost(t *testing.T) {
	t.Parallel()
	const secret = "very-secret-web-token"
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<h1>Page %s</h1>you sent %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	host := strings.Replace(strings.TrimPrefix(server.URL, "http://"), "127.0.0.1", "localhost", 1)
	m := meshtest.Start(t, bin, meshtest.Config{})
	m.Process("toolhost").Kill()
	m.Start("toolhost", meshtest.Env("WEB_TEST_TOKEN="+secret), meshtest.Args("--sandbox-private-host", host))
	s := spec(scriptFile("browsed", strings.ReplaceAll(browsed, "HOST", host)), newWorkspace(t))
	s.Config.Tools.Yolo = proto.Bool(false)
	s.Agent.Web = &harnessv1.Web{Fetch: true, Request: true, Calculate: true, Credentials: []*harnessv1.WebCredential{
		{Host: host, Headers: map[string]string{"Authorization": "Bearer ${WEB_TEST_TOKEN}"}},
	}}
	run := runlog.Run{Namespace: "default", ID: "browsed"}
	if _, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.StartRunResponse, error) { // the tool host starts
		return m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s})
	}); err != nil {
		t.Fatal(err)
	}
	approve := func(why string, decision harnessv1.ApprovalDecision) *harnessv1.PendingCall {
		t.Helper()
		var pending *harnessv1.PendingCall
		waittest.Eventually(t, "a call asks: "+why, func() bool {
			r, err := m.Client().ListPending(t.Context(), &harnessv1.ListPendingRequest{RunId: run.ID})
			if err != nil || len(r.GetPending()) != 1 || !strings.Contains(r.GetPending()[0].GetCall().GetWhy(), why) {
				return false
			}
			pending = r.GetPending()[0].GetCall()
			return true
		})
		a := &harnessv1.Approval{CallId: pending.GetCallId(), Decision: decision}
		if decision == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN {
			a.Rules = pending.GetPreview().GetRules()
		}
		if _, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
			return m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: run.ID, RequestId: pending.GetCallId(), Input: &harnessv1.SendInputRequest_Approval{Approval: a}})
		}); err != nil {
			t.Fatal(err)
		}
		return pending
	}
	first := approve("it reads from "+host, harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN)
	if rules := first.GetPreview().GetRules(); len(rules) != 1 || rules[0].GetHost() != host || first.GetOnlyOnce() {
		t.Errorf("%v", first)
	}
	if fourth := approve("it sends POST to "+host, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE); !fourth.GetOnlyOnce() {
		t.Errorf("%v", fourth)
	}
	entries := m.Ended(run, 0)
	mu.Lock()
	slices.Sort(requests)
	got := strings.Join(requests, "\n")
	mu.Unlock()
	if want := strings.ReplaceAll("GET /first +\nGET /second +\nGET /third +\nPOST /fourth +", "+", "Bearer "+secret); got != want {
		t.Errorf("requests:\n%s", got)
	}
	var record strings.Builder
	for _, e := range entries {
		record.WriteString(prototext.Format(e.Record))
	}
	for _, want := range []string{"you sent [credential]", "[data from " + host + "] http://" + host + "/first", "# Page /first", "status_code: 200", `"0.3"`, "There is no tool \\\"web_search\\\""} {
		if !strings.Contains(record.String(), want) {
			t.Errorf("the record lacks %q", want)
		}
	}
	if strings.Contains(record.String(), secret) {
		t.Error("the credential is in the record")
	}
}
