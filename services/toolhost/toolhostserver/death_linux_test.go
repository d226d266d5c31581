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

// inCall starts a host in the middle of call c: the command has passed its gate.
func inCall(t *testing.T, ledger, workspace, command string) (host *hostProcess, req *harnessv1.ExecuteToolRequest) {
	t.Helper()
	pass := gate(t, workspace)
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
	pass()
	return host, req
}

// stays is that a call is UNKNOWN to a host, to be asked and to be cancelled,
// however often, can no longer start, and has left one line.
func stays(t *testing.T, host *hostProcess, req *harnessv1.ExecuteToolRequest) {
	t.Helper()
	is(t, host.send(t, req), unknown, false)
	for range 2 { // the answer to the first may have been lost
		resp := host.cancel(t, req.GetLedgerId(), req.GetCallId())
		if !slices.Equal(resp.GetUnknown(), []string{req.GetCallId()}) || len(resp.GetKilled())+len(resp.GetFinished()) > 0 {
			t.Fatalf("got %v", resp)
		}
	}
	is(t, host.send(t, req), wasKilled, false)
	out, err := os.ReadFile(filepath.Join(req.GetWorkspace(), "out"))
	if err != nil || string(out) != "line\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestALedgerThatIsLostInMidCall(t *testing.T) {
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	host, req := inCall(t, ledger, workspace, stubborn(sleep))
	host.kill()
	if err := os.Remove(filepath.Join(ledger, ledgerFile)); err != nil {
		t.Fatal(err)
	}
	host = serve(t, ledger)
	if left := sleepers(sleep); left != nil {
		t.Fatalf("still there: %v", left)
	}
	if id := host.ledgerID(t); !toolhost.Replaces(id, req.GetLedgerId()) {
		t.Fatalf("%s does not replace %s", id, req.GetLedgerId())
	}
	stays(t, host, req)
	host.kill()
	host = serve(t, ledger)
	if resp := host.cancel(t, req.GetLedgerId(), "c"); !slices.Equal(resp.GetUnknown(), []string{"c"}) {
		t.Fatalf("the tombstone was not durable: %v", resp)
	}
	is(t, host.send(t, req), wasKilled, false)
	is(t, host.send(t, commandRequest(workspace, "d", "true")), ended, false)
}

func TestAKilledHostLeavesNothingAndRunsNothingTwice(t *testing.T) {
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	host, req := inCall(t, ledger, workspace, stubborn(sleep))
	if sleepers(sleep) == nil {
		t.Fatal("nothing to be killed")
	}
	host.kill()
	begin := time.Now()
	host = serve(t, ledger)
	t.Logf("served after %v", time.Since(begin))
	if left := sleepers(sleep); left != nil {
		t.Fatalf("still there: %v", left)
	}
	if id := host.ledgerID(t); id != req.GetLedgerId() {
		t.Fatalf("ledger %s became %s", req.GetLedgerId(), id)
	}
	stays(t, host, req)
}

// orphaned is a command that tries to get away and keeps its environment, by
// which alone a process without a supervisor can be known.
const orphaned = `trap '' TERM INT HUP
echo line >> out
(setsid sh -c 'trap "" TERM INT HUP; (sleep SLEEP &) ; echo > gate; while :; do sleep SLEEP; done' &)
while :; do sleep SLEEP; done`

func TestOrphansWithoutASupervisorDieBeforeTheNextHostServes(t *testing.T) {
	for name, lose := range map[string]bool{"ledger kept": false, "ledger lost": true} {
		t.Run(name, func(t *testing.T) {
			ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
			host, req := inCall(t, ledger, workspace, strings.ReplaceAll(orphaned, "SLEEP", sleep))
			supervisors := supervisorsOf(host.pid)
			if len(supervisors) != 1 {
				t.Fatalf("supervisors %v", supervisors)
			}
			// Stopped, it cannot kill anything before it is killed itself.
			if err := errors.Join(
				unix.Kill(supervisors[0], unix.SIGSTOP),
				unix.Kill(host.pid, unix.SIGKILL),
				unix.Kill(supervisors[0], unix.SIGKILL),
			); err != nil {
				t.Fatal(err)
			}
			host.kill()
			orphans := sleepers(sleep)
			if len(orphans) == 0 {
				t.Fatal("nothing to be killed")
			}
			if lose {
				if err := os.Remove(filepath.Join(ledger, ledgerFile)); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			host = serve(t, ledger)
			t.Logf("%d orphans, served after %v", len(orphans), time.Since(begin))
			if left := sleepers(sleep); left != nil {
				t.Fatalf("still there: %v", left)
			}
			stays(t, host, req)
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

func TestAHostLeavesItsNeighboursAlone(t *testing.T) {
	neighbour := newHost(t, Config{})
	pass, sleep := gate(t, neighbour.dir), uniqueSleep()
	first := neighbour.begin(context.Background(), neighbour.request(tools.RunCommand, "c",
		map[string]any{"command": "echo > gate; sleep " + sleep}))
	pass()

	// One that has calls of its own and cancels some that it does not know.
	h := newHost(t, Config{})
	passed, own := gate(t, h.dir), uniqueSleep()
	second := h.begin(context.Background(), h.request(tools.RunCommand, "d",
		map[string]any{"command": "echo > gate; sleep " + own}))
	passed()
	resp, err := h.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, CallIds: []string{"c"}, LedgerId: neighbour.LedgerID(),
	})
	if err != nil || !slices.Equal(resp.GetUnknown(), []string{"c"}) {
		t.Fatalf("got %v, %v", resp, err)
	}
	if toolhost.Replaces(h.LedgerID(), neighbour.LedgerID()) {
		t.Error("a neighbour is taken for a successor")
	}
	for _, text := range []string{sleep, own} {
		if sleepers(text) == nil {
			t.Fatal("a command that nobody cancelled is dead")
		}
	}
	if resp := neighbour.cancel("c"); !slices.Equal(resp.GetKilled(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	is(t, (<-first).resp, wasKilled, false)
	h.cancel("d")
	is(t, (<-second).resp, wasKilled, false)
}
