package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCancelKillsACheckWithAllThatItStarted(t *testing.T) {
	h := newHost(t, Config{})
	pass, sleep := gate(t, h.dir), uniqueSleep()
	req := checkRequest(h.dir, "k", stubborn(sleep))
	running := h.beginCheck(req)
	pass()
	if sleepers(sleep) == nil {
		t.Fatal("nothing to be killed")
	}
	for range 2 {
		if resp := h.cancel("k"); !slices.Equal(resp.GetKilled(), []string{"k"}) || len(resp.GetFinished())+len(resp.GetUnknown()) != 0 {
			t.Fatalf("got %v", resp)
		}
	}
	if left := sleepers(sleep); left != nil {
		t.Fatalf("still there: %v", left)
	}
	if a := <-running; a.err != nil || a.resp.GetOutcome() != wasKilled {
		t.Fatalf("got %v", a)
	}
	if resp := h.check(req); resp.GetOutcome() != wasKilled {
		t.Fatalf("got %v", resp)
	}
}

func TestACheckThatAKilledHostHadBegunIsUnknown(t *testing.T) {
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	pass := gate(t, workspace)
	host := serve(t, ledger)
	req := checkRequest(workspace, "k", stubborn(sleep))
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = host.CheckCommand(context.Background(), req)
	}()
	pass()
	host.kill()
	<-left
	host = serve(t, ledger)
	if left := sleepers(sleep); left != nil {
		t.Fatalf("still there: %v", left)
	}
	resp, err := host.CheckCommand(context.Background(), req)
	if err != nil || resp.GetOutcome() != unknown {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp, err = host.CheckCommand(context.Background(), checkRequest(workspace, "k/2", "cat out"))
	if err != nil || resp.GetOutcome() != ended || resp.GetOutput() != "line\n" {
		t.Fatalf("got %v, %v", resp, err)
	}
	for range 2 {
		if resp := host.cancel(t, "", "k"); !slices.Equal(resp.GetUnknown(), []string{"k"}) {
			t.Fatalf("got %v", resp)
		}
	}
	if resp, err := host.CheckCommand(context.Background(), req); err != nil || resp.GetOutcome() != wasKilled {
		t.Fatalf("got %v, %v", resp, err)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "line\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}
