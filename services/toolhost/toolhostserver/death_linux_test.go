package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// hostDuringCall starts a host and call c, and returns when the command has opened its
// gate.
func hostDuringCall(t *testing.T, ledger, workspace, command string) (host *hostProcess, req *harnessv1.ExecuteToolRequest) {
	t.Helper()
	awaitGate := gate(t, workspace)
	host = serve(t, ledger)
	req = commandRequest(workspace, "c", command)
	req.LedgerId = host.ledgerID(t)
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = host.ExecuteTool(ctx, req)
	}()
	t.Cleanup(func() {
		leave()
		<-left
	})
	awaitGate()
	return host, req
}

// checkUnknown checks that a call is UNKNOWN to a host, also when it is cancelled twice,
// that it cannot start any more, and that it ran once.
func checkUnknown(t *testing.T, host *hostProcess, req *harnessv1.ExecuteToolRequest) {
	t.Helper()
	expect(t, host.send(t, req), unknown, false)
	for range 2 { // the first response may have been lost
		resp := host.cancel(t, req.GetLedgerId(), req.GetCallId())
		if !slices.Equal(resp.GetUnknown(), []string{req.GetCallId()}) || len(resp.GetKilled())+len(resp.GetFinished()) > 0 {
			t.Fatalf("got %v", resp)
		}
	}
	expect(t, host.send(t, req), cancelled, false)
	out, err := os.ReadFile(filepath.Join(req.GetWorkspace(), "out"))
	if err != nil || string(out) != "line\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestLedgerLostDuringACall(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts")
	}
	t.Parallel()
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	host, req := hostDuringCall(t, ledger, workspace, escaping(sleep))
	host.kill()
	if err := os.Remove(filepath.Join(ledger, ledgerFile)); err != nil {
		t.Fatal(err)
	}
	host = serve(t, ledger)
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if id := host.ledgerID(t); !toolhost.Replaces(id, req.GetLedgerId()) {
		t.Fatalf("%s does not replace %s", id, req.GetLedgerId())
	}
	checkUnknown(t, host, req)
	host.kill()
	host = serve(t, ledger)
	if resp := host.cancel(t, req.GetLedgerId(), "c"); !slices.Equal(resp.GetUnknown(), []string{"c"}) {
		t.Fatalf("the tombstone was not durable: %v", resp)
	}
	expect(t, host.send(t, req), cancelled, false)
	expect(t, host.send(t, commandRequest(workspace, "d", "true")), done, false)
}

func TestKilledHostLeavesNoProcessAndRunsNothingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts")
	}
	t.Parallel()
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	host, req := hostDuringCall(t, ledger, workspace, escaping(sleep))
	if sleeping(sleep) == nil {
		t.Fatal("no process to kill")
	}
	host.kill()
	begin := time.Now()
	host = serve(t, ledger)
	t.Logf("served after %v", time.Since(begin))
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if id := host.ledgerID(t); id != req.GetLedgerId() {
		t.Fatalf("ledger %s became %s", req.GetLedgerId(), id)
	}
	checkUnknown(t, host, req)
}

// orphaningScript is a command that tries to escape but keeps its environment: without a
// supervisor, only that identifies its processes.
const orphaningScript = `trap '' TERM INT HUP
echo line >> out
(setsid sh -c 'trap "" TERM INT HUP; (sleep SLEEP &) ; echo > gate; while :; do sleep SLEEP; done' &)
while :; do sleep SLEEP; done`

func TestOrphansDieBeforeTheNextHostServes(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts")
	}
	t.Parallel()
	for name, lose := range map[string]bool{"ledger kept": false, "ledger lost": true} {
		t.Run(name, func(t *testing.T) {
			ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
			host, req := hostDuringCall(t, ledger, workspace, strings.ReplaceAll(orphaningScript, "SLEEP", sleep))
			supervisors := supervisorsOf(host.pid)
			if len(supervisors) != 1 {
				t.Fatalf("supervisors %v", supervisors)
			}
			// A stopped supervisor kills no process before it is killed itself.
			if err := errors.Join(
				unix.Kill(supervisors[0], unix.SIGSTOP),
				unix.Kill(host.pid, unix.SIGKILL),
				unix.Kill(supervisors[0], unix.SIGKILL),
			); err != nil {
				t.Fatal(err)
			}
			host.kill()
			orphans := sleeping(sleep)
			if len(orphans) == 0 {
				t.Fatal("no process to kill")
			}
			if lose {
				if err := os.Remove(filepath.Join(ledger, ledgerFile)); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			host = serve(t, ledger)
			t.Logf("%d orphans, served after %v", len(orphans), time.Since(begin))
			if left := sleeping(sleep); left != nil {
				t.Fatalf("processes left: %v", left)
			}
			checkUnknown(t, host, req)
		})
	}
}

// supervisorsOf returns the pids of a host's supervisors.
func supervisorsOf(host int) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		var pid, parent int
		stat, _ := os.ReadFile(name)
		line, _ := os.ReadFile(filepath.Dir(name) + "/cmdline")
		_, _ = fmt.Sscanf(string(stat), "%d", &pid)
		_, rest, _ := strings.Cut(string(stat), ") ")
		_, _ = fmt.Sscanf(rest, "%1s %d", new(string), &parent)
		if parent == host && strings.HasPrefix(string(line), "harness-command-supervisor\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestHostDoesNotAffectOtherHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts")
	}
	t.Parallel()
	neighbour := newHost(t, Config{})
	awaitGate, sleep := gate(t, neighbour.dir), uniqueSleep()
	first := neighbour.startCall(context.Background(), neighbour.request(tools.RunCommand, "c",
		map[string]any{"command": "echo > gate; sleep " + sleep}))
	awaitGate()

	// This host has a running call and cancels a call that it does not know.
	h := newHost(t, Config{})
	awaitOwnGate, own := gate(t, h.dir), uniqueSleep()
	second := h.startCall(context.Background(), h.request(tools.RunCommand, "d",
		map[string]any{"command": "echo > gate; sleep " + own}))
	awaitOwnGate()
	resp, err := h.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, CallIds: []string{"c"}, LedgerId: neighbour.LedgerID(),
	})
	if err != nil || !slices.Equal(resp.GetUnknown(), []string{"c"}) {
		t.Fatalf("got %v, %v", resp, err)
	}
	if toolhost.Replaces(h.LedgerID(), neighbour.LedgerID()) {
		t.Error("the ledger replaces that of another host")
	}
	for _, text := range []string{sleep, own} {
		if sleeping(text) == nil {
			t.Fatal("a command is dead that was not cancelled")
		}
	}
	if resp := neighbour.cancel("c"); !slices.Equal(resp.GetKilled(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	expect(t, (<-first).resp, cancelled, false)
	h.cancel("d")
	expect(t, (<-second).resp, cancelled, false)
}
