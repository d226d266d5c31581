package node

import (
	"maps"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func TestABridgeIsReadyUnderTheNameOfItsExecutorToo(t *testing.T) {
	n := &Node{cfg: Config{Roles: []string{"turn", workflow.Bridge}, Executor: "reviewer"}}
	m := newMesh(n)
	m.roles = []*role{{roleSpec: turnRole, reason: "it is starting"}, {roleSpec: bridgeRole}}
	if got, want := m.ready(), map[string]bool{"turn": false, workflow.Bridge: true, "reviewer": true}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	m.roles[1].reason = "the executor cannot be called"
	if got, want := m.ready(), map[string]bool{"turn": false, workflow.Bridge: false, "reviewer": false}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, extra := m.reasons()["reviewer"]; extra {
		t.Error("/readyz names both the executor and its bridge")
	}
}
