package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestChecksWithoutTheirFile: agent check warns about a command that its folder has no file
// for, and not once the file is there.
func TestChecksWithoutTheirFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harnesstest.Write(t, filepath.Join(dir, "contract.yaml"), "goal: g\nrequired_outputs:\n  - {id: tests, description: d, predicate: {type: COMMAND_SUCCEEDS, command: sh check.sh}}\n")
	agent := harnesstest.Write(t, filepath.Join(dir, "agent.yaml"), "name: a\ncontract: contract.yaml\n")
	got := harnesstest.Call(t, nil, "", "agent", "check", agent)
	if got.Code != 0 || !strings.Contains(got.Err, "WARNING") || !strings.Contains(got.Err, "output tests") || !strings.Contains(got.Err, "check.sh") {
		t.Errorf("%+v", got)
	}
	harnesstest.Write(t, filepath.Join(dir, "check.sh"), "exit 0\n")
	if got := harnesstest.Call(t, nil, "", "agent", "check", agent); got.Code != 0 || got.Err != "" {
		t.Errorf("with the file: %+v", got)
	}
}
