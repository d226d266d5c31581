package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCancelKillsAllProcessesOfACheck(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate, sleep := gate(t, h.dir), uniqueSleep()
	req := checkRequest(h.dir, "k", escaping(sleep))
	running := h.startCheck(req)
	awaitGate()
	if sleeping(sleep) == nil {
		t.Fatal("no process to kill")
	}
	for range 2 {
		if resp := h.cancel("k"); !slices.Equal(resp.GetKilled(), []string{"k"}) || len(resp.GetFinished())+len(resp.GetUnknown()) != 0 {
			t.Fatalf("got %v", resp)
		}
	}
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if a := <-running; a.err != nil || a.resp.GetOutcome() != cancelled {
		t.Fatalf("got %v", a)
	}
	if resp := h.check(req); resp.GetOutcome() != cancelled {
		t.Fatalf("got %v", resp)
	}
}

func TestCheckIsUnknown_WhenItsHostWasKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	awaitGate := gate(t, workspace)
	host := serve(t, ledger)
	req := checkRequest(workspace, "k", escaping(sleep))
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = host.CheckCommand(context.Background(), req)
	}()
	awaitGate()
	host.kill()
	<-left
	host = serve(t, ledger)
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	resp, err := host.CheckCommand(context.Background(), req)
	if err != nil || resp.GetOutcome() != unknown {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp, err = host.CheckCommand(context.Background(), checkRequest(workspace, "k/2", "cat out"))
	if err != nil || resp.GetOutcome() != done || resp.GetOutput() != "line\n" {
		t.Fatalf("got %v, %v", resp, err)
	}
	for range 2 {
		if resp := host.cancel(t, "", "k"); !slices.Equal(resp.GetUnknown(), []string{"k"}) {
			t.Fatalf("got %v", resp)
		}
	}
	if resp, err := host.CheckCommand(context.Background(), req); err != nil || resp.GetOutcome() != cancelled {
		t.Fatalf("got %v, %v", resp, err)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "line\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}
