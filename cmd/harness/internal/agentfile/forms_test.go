package agentfile_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
)

// TestSubAgentsNameFiles: instructions and the contract of a sub-agent may be in files next to the
// agent file.
func TestSubAgentsNameFiles(t *testing.T) {
	file, err := agentfile.Parse("dir/a.yaml", []byte("agents:\n- {name: a, description: b, file: a.md, contract: c.yaml}\n- explore\n"),
		tree(map[string]string{"dir/a.md": "Look: at `x`.\n", "dir/c.yaml": "requirements: [d]"}))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, file.Agent, `agents: {name: "a" description: "b" instructions: "Look: at `+"`x`"+`.\n" contract: {requirements: "d"}} agents: {name: "explore"}`)
}
