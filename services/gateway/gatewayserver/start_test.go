package gatewayserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func TestStartRun(t *testing.T) {
	b := newBed(t)
	resp, err := b.client.StartRun(b.ctx, b.start("r1", "do it"))
	b.must(err)
	if resp.GetRunId() != "r1" || resp.GetNamespace() != b.namespace || resp.GetExisted() {
		t.Fatalf("got %v", resp)
	}
	v, err := b.log.View(b.ctx, runlog.Run{Namespace: b.namespace, ID: "r1"}, 0)
	b.must(err)
	step := v.Step.Record.GetStep()
	if v.Newest.Header.Version != 1 || step.GetTo() != "repair" || step.GetRepairTrigger().GetCause() != harnessv1.TriggerCause_TRIGGER_CAUSE_START {
		t.Fatalf("got %v", v.Step.Record)
	}
	resp, err = b.client.StartRun(b.ctx, b.start("r1", "do it"))
	b.must(err)
	if !resp.GetExisted() {
		t.Fatal("the same request started a second run")
	}
	_, err = b.client.StartRun(b.ctx, b.start("r1", "do something else"))
	b.refused(err, codes.AlreadyExists, "RUN_EXISTS")

	b.openRun("r1").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	resp, err = b.client.StartRun(b.ctx, b.start("r1", "do it"))
	b.must(err)
	if !resp.GetExisted() {
		t.Fatal("the same request started a run that has ended")
	}
}

func TestStartRunIDs(t *testing.T) {
	b := newBed(t)
	r := b.start("", "do it")
	r.RequestId = "q1"
	first, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	again, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	if first.GetRunId() != again.GetRunId() || !again.GetExisted() {
		t.Fatalf("got %v, then %v", first, again)
	}
	r.Spec = b.spec("do something else")
	_, err = b.client.StartRun(b.ctx, r)
	b.refused(err, codes.AlreadyExists, "RUN_EXISTS")

	r.RequestId = ""
	one, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	two, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	if one.GetRunId() == two.GetRunId() || one.GetExisted() || two.GetExisted() {
		t.Fatalf("two requests without ids: %v and %v", one, two)
	}
}

// A generated id that is already in use is generated again.
func TestStartRunGeneratedIDInUse(t *testing.T) {
	var n atomic.Uint64
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Random = func() uint64 { // the bits of an id are the same a few times over
			i := n.Add(1)
			return i<<32 | i/4
		}
	})
	seen := map[string]bool{}
	for range 4 {
		resp, err := b.client.StartRun(b.ctx, b.start("", "do it"))
		b.must(err)
		if seen[resp.GetRunId()] {
			t.Fatalf("%s was given twice", resp.GetRunId())
		}
		seen[resp.GetRunId()] = true
	}
}

func TestStartRunLargeGoal(t *testing.T) {
	b := newBed(t)
	goal := strings.Repeat("größer ", 20_000)
	for i := range 2 {
		resp, err := b.client.StartRun(b.ctx, b.start("r1", goal))
		b.must(err)
		if resp.GetExisted() != (i == 1) {
			t.Fatalf("request %d: %v", i, resp)
		}
	}
	got, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	ref := got.GetSpec().GetGoal().GetBlob()
	if ref.GetSize() != uint64(len(goal)) || !strings.HasPrefix(goal, got.GetRun().GetGoal()) || len(got.GetRun().GetGoal()) < 500 {
		t.Fatalf("got %v", got)
	}
	if text := b.blob("r1", ref.GetDigest()); text != goal {
		t.Fatalf("the blob has %d bytes, want %d", len(text), len(goal))
	}
	_, err = b.client.StartRun(b.ctx, b.start("r1", goal+"!"))
	b.refused(err, codes.AlreadyExists, "RUN_EXISTS")
}

func TestStartRunRefusals(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Workspaces = func(_ context.Context, r *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
			switch r.GetWorkspace() {
			case "/gone":
				return nil, errors.New("no such directory")
			case "/down":
				return nil, status.Error(codes.Unavailable, "connection refused")
			}
			if r.GetSandbox().GetLevel() == harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL {
				return &harnessv1.DescribeWorkspaceResponse{Problem: &harnessv1.SandboxProblem{Field: "sandbox.level", Message: "the tool host reaches only kernel"}}, nil
			}
			return &harnessv1.DescribeWorkspaceResponse{}, nil
		}
	})
	for name, c := range map[string]struct {
		change func(*harnessv1.StartRunRequest)
		code   codes.Code
		reason string
	}{
		"field": {func(r *harnessv1.StartRunRequest) { r.RunId = "a b" }, codes.InvalidArgument, "INVALID_FIELD"},
		"size":  {func(r *harnessv1.StartRunRequest) { r.Spec.Goal = content.Inline(strings.Repeat("x", 1<<20+1)) }, codes.ResourceExhausted, "TOO_LARGE"},
		"executor": {func(r *harnessv1.StartRunRequest) {
			r.Spec.Workflow = []string{"repair", "missing", "turn", "stopdecision"}
		}, codes.FailedPrecondition, "EXECUTOR_MISSING"},
		"workspace": {func(r *harnessv1.StartRunRequest) { r.Spec.Workspace = "/gone" }, codes.InvalidArgument, "WORKSPACE_UNUSABLE"},
		"sandbox": {func(r *harnessv1.StartRunRequest) {
			r.Spec.Config = &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{Level: harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL}}
		}, codes.InvalidArgument, "INVALID_FIELD"},
		"sandbox folder": {func(r *harnessv1.StartRunRequest) {
			r.Spec.Config = &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{Read: []string{"/"}}}
		}, codes.InvalidArgument, "INVALID_FIELD"},
		"tool host": {func(r *harnessv1.StartRunRequest) { r.Spec.Workspace = "/down" }, codes.Unavailable, "LOG_UNAVAILABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.start("refused", "do it")
			c.change(r)
			_, err := b.client.StartRun(b.ctx, r)
			b.refused(err, c.code, c.reason)
		})
	}
	if _, err := b.log.View(b.ctx, runlog.Run{Namespace: b.namespace, ID: "refused"}, 0); !errors.Is(err, runlog.ErrNotFound) {
		t.Fatalf("something was written: %v", err)
	}
}

// An effort that the model does not take refuses the start; the model's own default and
// a model that is not named yet are not checked.
func TestStartRunWithAnEffort(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Effort = func(model string, effort harnessv1.Effort) error {
			if model == "script:x" && effort == harnessv1.Effort_EFFORT_LOW {
				return nil
			}
			return errors.New(model + " takes the efforts low, high")
		}
	})
	for id, c := range map[string]struct {
		model   string
		effort  harnessv1.Effort
		refused bool
	}{
		"taken":   {"script:x", harnessv1.Effort_EFFORT_LOW, false},
		"refused": {"script:x", harnessv1.Effort_EFFORT_MAX, true},
		"default": {"script:x", harnessv1.Effort_EFFORT_UNSPECIFIED, false},
		"unnamed": {"", harnessv1.Effort_EFFORT_MAX, false},
	} {
		r := b.start(id, "do it")
		r.Spec.Agent.Model = c.model
		r.Spec.Agent.FallbackModels = []string{"script:other"}
		r.Spec.Agent.Reasoning = &harnessv1.ReasoningConfig{Effort: c.effort}
		_, err := b.client.StartRun(b.ctx, r)
		if !c.refused {
			b.must(err)
			continue
		}
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
		if text := status.Convert(err).Message(); text != "spec.agent.reasoning.effort: script:x takes the efforts low, high" {
			t.Errorf("%s: %s", id, text)
		}
	}
}

func TestStartRunRace(t *testing.T) {
	b := newBed(t)
	var created atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			resp, err := b.client.StartRun(b.ctx, b.start("r1", "do it"))
			if err != nil {
				t.Error(err)
			} else if !resp.GetExisted() {
				created.Add(1)
			}
		})
	}
	all.Wait()
	if created.Load() != 1 {
		t.Fatalf("%d requests think that they started the run", created.Load())
	}
}

// silent is a log whose appends return no answer, stored or not.
type silent struct {
	runlog.Log
	store bool
}

func (l silent) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if l.store {
		if _, err := l.Log.Append(ctx, rec); err != nil {
			return 0, err
		}
	}
	return 0, runlog.ErrUnavailable
}

func TestStartRunWithoutAnswer(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = silent{shared, true} })
	resp, err := b.client.StartRun(b.ctx, b.start("r1", "do it"))
	b.must(err)
	if resp.GetExisted() {
		t.Fatal("the request's own record counts as another's")
	}
	b = newBed(t, func(c *gatewayserver.Config) { c.Log = silent{shared, false} })
	_, err = b.client.StartRun(b.ctx, b.start("r1", "do it"))
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	if !strings.Contains(err.Error(), "r1") || !strings.Contains(err.Error(), "request_id") {
		t.Fatalf("the error does not name the run and request_id: %v", err)
	}
}
