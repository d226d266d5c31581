package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestInferenceIsAvailable: a worker counts for a minute after it was ready, always in its
// own process, and if none is known, when one is found.
func TestInferenceIsAvailable(t *testing.T) {
	now := time.Unix(1000, 0)
	w := &inferenceWorkers{now: func() time.Time { return now }}
	ready := func(role string, yes bool) []*harnessv1.Presence {
		return []*harnessv1.Presence{{Role: workflow.Turn, Ready: true}, {Role: role, Ready: yes}}
	}
	for _, step := range []struct {
		all  []*harnessv1.Presence
		wait time.Duration
		want bool
	}{
		{nil, 0, false},
		{ready(workflow.Inference, false), 0, false},
		{ready(workflow.Repair, true), 0, false},
		{ready(workflow.Inference, true), 0, true},
		{ready(workflow.Inference, false), 59 * time.Second, true},
		{nil, time.Second, false},
		{ready(workflow.Inference, true), time.Hour, true},
	} {
		now = now.Add(step.wait)
		w.record(step.all)
		if got := w.Available(t.Context()); got != step.want {
			t.Errorf("after %v and %v: available %t", step.wait, step.all, got)
		}
	}
	now = now.Add(time.Hour)
	missing := errors.New("none")
	w.locate = func(context.Context) error { return missing }
	if w.Available(t.Context()) {
		t.Error("a worker is available that was not found")
	}
	if missing = nil; !w.Available(t.Context()) || !w.recent() {
		t.Error("a worker that is ready now is not available")
	}
	inside := newMesh(&Node{cfg: Config{Roles: []string{workflow.Compaction, workflow.Inference}}})
	if !inside.inference.Available(t.Context()) {
		t.Error("a worker in this process is not available")
	}
}

// TestGatewaysWarnOfAMissingInferenceWorker: only a gateway does, and only while there is
// none.
func TestGatewaysWarnOfAMissingInferenceWorker(t *testing.T) {
	m := newMesh(&Node{cfg: Config{Roles: []string{workflow.Gateway}}})
	if got := m.warnings()[workflow.Inference]; !strings.Contains(got, WithoutInference) || !strings.HasSuffix(got, "start `harness serve --roles inference`") {
		t.Errorf("got %q", got)
	}
	m.inference.record([]*harnessv1.Presence{{Role: workflow.Inference, Ready: true}})
	if got := m.warnings(); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if got := newMesh(&Node{cfg: Config{Roles: []string{workflow.Turn}}}).warnings(); len(got) != 0 {
		t.Errorf("a turn worker warns: %q", got)
	}
}

// TestAProcessWithAllRolesCarriesOutJobs: the role belongs to all, on an embedded bus too.
func TestAProcessWithAllRolesCarriesOutJobs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	n, err := Start(ctx, Config{Data: t.TempDir(), Sync: "interval"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	script := filepath.Join(t.TempDir(), "script.yaml")
	text := "turns:\n  - {calls: [{name: ask_user, arguments: {question: \"Which?\"}}]}\njobs:\n  summarize:\n    - {answer: {facts: []}, usage: {input_tokens: 9}}\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := runlog.Run{Namespace: "default", ID: "r"}
	_, err = n.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Ask."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + script},
	}})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := n.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: run.ID, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	for err == nil {
		_, err = watch.Recv()
	}
	view, err := n.log.View(ctx, run, 0)
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(&harnessv1.ModelRequest{Messages: []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Sum up.")}}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := n.log.PutBlob(ctx, run, data)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 8)
	stop, err := n.log.OnJobEnd(func(_ runlog.Run, key string) { ended <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, err = n.log.CreateJob(ctx, &harnessv1.Job{
		Namespace: run.Namespace, RunId: run.ID, FirstSequence: view.Step.Record.GetStep().GetSnapshot().GetFirstSequence(),
		Key: "k1", Purpose: "summarize", Model: "script:" + script, Request: ref,
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := ""; key != "k1"; {
		select {
		case key = <-ended:
		case <-ctx.Done():
			t.Fatal("the job has no result")
		}
	}
	stored, err := n.log.BlobAs(ctx, run, "k1")
	result := &harnessv1.JobResult{}
	if err != nil || proto.Unmarshal(stored, result) != nil || result.GetText() != `{"facts":[]}` || result.GetUsage().GetInputTokens() != 9 {
		t.Errorf("got %v, %v", result, err)
	}
}
