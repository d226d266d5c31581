package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestKeysOfInputs: those of the file, read again when it changes, or what follows from the key of the mesh. Without
// a key, every input counts; a process that does not require the key of the mesh seals with it all the same.
func TestKeysOfInputs(t *testing.T) {
	dir := t.TempDir()
	keyFile, meshFile := filepath.Join(dir, "keys"), filepath.Join(dir, "mesh.key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(keyFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, _, err := localkey.Watch(meshFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run, stored := runlog.Run{Namespace: "default", ID: "r"}, []byte("an input")
	open := func(cfg Config, required bool) jetstream.Sealer {
		t.Helper()
		cfg.Logger = slog.New(slog.DiscardHandler)
		n := &Node{cfg: cfg, meshKey: &meshKey{file: cfg.MeshKey.File, logger: cfg.Logger}}
		if required {
			n.meshKey.set(key)
		}
		s, err := n.openInputSeal()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const nats = "nats://127.0.0.1:1"
	repair, gateway := []string{workflow.Repair}, []string{workflow.Gateway}
	one, two := strings.Repeat("1", 32), strings.Repeat("2", 32)
	write(one)
	filed := open(Config{NATS: nats, Roles: repair, InputKey: keyFile, MeshKey: MeshKey{File: meshFile}}, true)
	derived, lazy := open(Config{NATS: nats, Roles: repair}, true), open(Config{NATS: nats, Roles: gateway, MeshKey: MeshKey{File: meshFile}}, false)
	none := open(Config{NATS: nats, Roles: gateway, MeshKey: MeshKey{File: meshFile + "x"}}, false)
	for name, c := range map[string]struct {
		by, at jetstream.Sealer
		valid  bool
	}{
		"of the file": {filed, filed, true}, "of the file, where it is not": {filed, derived, false}, "derived": {derived, derived, true},
		"derived, for the file": {derived, filed, false}, "by a gateway that requires no key": {lazy, derived, true}, "for it": {none, lazy, true},
		"without a key": {none, derived, false}, "without a key, for the file": {none, filed, false}, "nowhere": {none, none, true},
	} {
		if got := c.at.Valid(run, stored, c.by.Seal(run, stored)); got != c.valid {
			t.Errorf("%s: %v", name, got)
		}
	}
	before := filed.Seal(run, stored)
	write(two + "\n" + one)
	if after := filed.Seal(run, stored); after == before || !filed.Valid(run, stored, before) || !filed.Valid(run, stored, after) {
		t.Error("the file is not read again")
	}
	write("short")
	if !filed.Valid(run, stored, before) {
		t.Error("a file with an error takes the keys away")
	}
	for name, cfg := range map[string]Config{"an embedded bus": {Roles: repair, InputKey: keyFile}, "another role": {NATS: nats, Roles: []string{workflow.Turn}, MeshKey: MeshKey{File: meshFile}}} {
		if s := open(cfg, true); s != nil {
			t.Errorf("%s seals inputs", name)
		}
	}
	n := &Node{cfg: Config{NATS: nats, Roles: repair, InputKey: keyFile, Logger: slog.New(slog.DiscardHandler)}, meshKey: &meshKey{}}
	if _, err := n.openInputSeal(); err == nil || !strings.Contains(err.Error(), "--input-key") || !strings.Contains(err.Error(), "line 1") || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a file with an error: %v", err)
	}
}
