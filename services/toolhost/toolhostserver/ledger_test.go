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

func TestTheLedgersIdSaysWhereItLies(t *testing.T) {
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
		t.Fatalf("%q is not at its place", first)
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

// TestALedgerOfAnEarlierVersion has an id without a place and tombstones that do
// not say what they bury.
func TestALedgerOfAnEarlierVersion(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	h.close()
	db, err := bbolt.Open(filepath.Join(dir, ledgerFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := callKey("n", "r", 7, "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket(metaBucket).Put(idKey, []byte(id)); err != nil {
			return err
		}
		return tx.Bucket(callsBucket).Put([]byte(key), []byte("\x03\x00\x00\x00\x00\x65\x00\x00\x00"))
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
	is(t, h.execute(h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})), wasKilled, false)
}

func TestCancelAnswersTheSameAgain(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	other := toolhost.LedgerID(toolhost.Place(h.LedgerID()), "0000000000000000")
	pass := gate(t, h.dir)
	first := h.begin(context.Background(), h.request(tools.RunCommand, "killed", map[string]any{"command": "echo > gate; cat gate"}))
	pass()
	h.execute(h.request(tools.RunCommand, "done", map[string]any{"command": "true"}))
	for life := range 2 {
		for range 2 {
			// What this ledger knows is known whatever ledger the request names.
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
			t.Fatalf("what was once unknown is known: %v", resp)
		}
		if life == 0 {
			is(t, (<-first).resp, wasKilled, false)
			h.close()
			h = newHost(t, Config{Dir: dir})
		}
	}
	// It never began here; of there nobody can say.
	if resp := h.cancelUnder(other, "never"); !slices.Equal(resp.GetUnknown(), []string{"never"}) {
		t.Fatalf("got %v", resp)
	}
}

func TestDrain(t *testing.T) {
	h := newHost(t, Config{})
	pass := gate(t, h.dir)
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "echo > gate; cat gate"})
	old := h.request(tools.RunCommand, "old", map[string]any{"command": "echo old"})
	h.execute(old)
	first := h.begin(context.Background(), req)
	pass()

	gone, leave := context.WithCancel(context.Background())
	leave()
	if err := h.Drain(gone); err == nil {
		t.Fatal("drained while a call runs")
	}
	for _, tool := range []string{tools.RunCommand, tools.ListDirectory, "no_such_tool"} {
		if _, err := h.ExecuteTool(context.Background(), h.request(tool, "", nil)); code(err).String() != "Unavailable" {
			t.Fatalf("%s: got %v", tool, err)
		}
	}
	is(t, h.execute(old), ended, false, "old")
	joined := h.begin(context.Background(), req)
	drained := make(chan error, 1)
	go func() { drained <- h.Drain(context.Background()) }()
	h.write("gate", "") // lets it end
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	is(t, (<-first).resp, ended, false)
	is(t, (<-joined).resp, ended, false)
	is(t, h.execute(req), ended, false)
	if resp := h.cancel("c", "never"); !slices.Equal(resp.GetFinished(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestADrainingHostStillKills(t *testing.T) {
	h := newHost(t, Config{})
	pass := gate(t, h.dir)
	first := h.begin(context.Background(), h.request(tools.RunCommand, "c", map[string]any{"command": "echo > gate; cat gate"}))
	pass()
	drained := make(chan error, 1)
	go func() { drained <- h.Drain(context.Background()) }()
	if resp := h.cancel("c"); !slices.Equal(resp.GetKilled(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	is(t, (<-first).resp, wasKilled, false)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
}
