package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func (h *host) close() {
	h.t.Helper()
	if err := h.Close(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) cancelUnder(ledgerID string, ids ...string) *harnessv1.CancelToolsResponse {
	h.t.Helper()
	resp, err := h.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, CallIds: ids, LedgerId: ledgerID,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func TestLedgerIDHasItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Dir: dir})
	first := h.LedgerID()
	if toolhost.Place(first) == "" || toolhost.Place(first) != toolhost.PlaceOf(hostname, dir) {
		t.Fatalf("the id %q does not have its place", first)
	}
	described, err := h.DescribeHost(context.Background(), nil)
	if err != nil || described.GetLedgerId() != first {
		t.Fatalf("got %v, %v", described, err)
	}
	h.close()
	h = newHost(t, Config{Dir: link})
	if h.LedgerID() != first {
		t.Fatalf("%s became %s", first, h.LedgerID())
	}
	h.close()
	if err := os.Remove(filepath.Join(dir, ledgerFile)); err != nil {
		t.Fatal(err)
	}
	h = newHost(t, Config{Dir: link})
	if !toolhost.Replaces(h.LedgerID(), first) {
		t.Fatalf("%s does not replace %s", h.LedgerID(), first)
	}
}

// A ledger of an earlier version has an id without a place and tombstones without a fate.
func TestLedgerOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	h.close()
	db, err := bbolt.Open(filepath.Join(dir, ledgerFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := ledger.RunKey("n", "r", 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte("meta")).Put([]byte("ledger_id"), []byte(id)); err != nil {
			return err
		}
		return tx.Bucket([]byte("calls")).Put([]byte(ledger.CallKey(run, "c")), []byte("\x03\x00\x00\x00\x00\x65\x00\x00\x00"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h = newHost(t, Config{Dir: dir})
	if h.LedgerID() != id {
		t.Fatalf("got %s", h.LedgerID())
	}
	if resp := h.cancelUnder(id, "c"); len(resp.GetKilled())+len(resp.GetFinished())+len(resp.GetUnknown()) > 0 {
		t.Fatalf("got %v", resp)
	}
	expect(t, h.execute(h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})), cancelled, false)
}

func TestCancelHasTheSameResponseAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	other := toolhost.LedgerID(toolhost.Place(h.LedgerID()), "0000000000000000")
	awaitGate := gate(t, h.dir)
	first := h.startCall(context.Background(), h.request(tools.RunCommand, "killed", map[string]any{"command": "echo > gate; cat gate"}))
	awaitGate()
	h.execute(h.request(tools.RunCommand, "done", map[string]any{"command": "true"}))
	for life := range 2 {
		for range 2 {
			// The status in this ledger counts, whatever ledger the request names.
			for ledgerID, never := range map[string]string{"": "never", h.LedgerID(): "never", other: "foreign"} {
				resp := h.cancelUnder(ledgerID, "killed", "done", never)
				if !slices.Equal(resp.GetKilled(), []string{"killed"}) || !slices.Equal(resp.GetFinished(), []string{"done"}) {
					t.Fatalf("life %d, ledger %q: %v", life, ledgerID, resp)
				}
				if known := len(resp.GetUnknown()) == 0; known != (never == "never") {
					t.Fatalf("life %d, ledger %q: %v", life, ledgerID, resp)
				}
			}
		}
		if resp := h.cancelUnder("", "foreign"); !slices.Equal(resp.GetUnknown(), []string{"foreign"}) {
			t.Fatalf("an unknown call is no longer unknown: %v", resp)
		}
		if life == 0 {
			expect(t, (<-first).resp, cancelled, false)
			h.close()
			h = newHost(t, Config{Dir: dir})
		}
	}
	// Unstarted under this ledger, unknown under the other one.
	if resp := h.cancelUnder(other, "never"); !slices.Equal(resp.GetUnknown(), []string{"never"}) {
		t.Fatalf("got %v", resp)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate := gate(t, h.dir)
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "echo > gate; cat gate"})
	old := h.request(tools.RunCommand, "old", map[string]any{"command": "echo old"})
	h.execute(old)
	first := h.startCall(context.Background(), req)
	awaitGate()

	gone, leave := context.WithCancel(context.Background())
	leave()
	if err := h.Drain(gone); err == nil {
		t.Fatal("Drain returned no error while a call is running")
	}
	for _, tool := range []string{tools.RunCommand, tools.ListDirectory, "no_such_tool"} {
		if _, err := h.ExecuteTool(context.Background(), h.request(tool, "", nil)); code(err).String() != "Unavailable" {
			t.Fatalf("%s: got %v", tool, err)
		}
	}
	expect(t, h.execute(old), done, false, "old")
	joined := h.startCall(context.Background(), req)
	drained := make(chan error, 1)
	go func() { drained <- h.Drain(context.Background()) }()
	h.write("gate", "") // ends the command
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	expect(t, (<-first).resp, done, false)
	expect(t, (<-joined).resp, done, false)
	expect(t, h.execute(req), done, false)
	if resp := h.cancel("c", "never"); !slices.Equal(resp.GetFinished(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestDrainingHostKillsCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate := gate(t, h.dir)
	first := h.startCall(context.Background(), h.request(tools.RunCommand, "c", map[string]any{"command": "echo > gate; cat gate"}))
	awaitGate()
	drained := make(chan error, 1)
	go func() { drained <- h.Drain(context.Background()) }()
	if resp := h.cancel("c"); !slices.Equal(resp.GetKilled(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	expect(t, (<-first).resp, cancelled, false)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
}
