package node

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// output is what a node prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestAHostBelowTheLeastLevelIsNotReady: bubblewrap, which full needs, is not on the PATH.
func TestAHostBelowTheLeastLevelIsNotReady(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for least, ready := range map[string]bool{"off": true, "full": false} {
		var out output
		n, err := Start(t.Context(), Config{Data: t.TempDir(), Sync: "interval", SandboxLeast: least, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.mesh.ready()[workflow.ToolHost]; got != ready {
			t.Errorf("%s: ready is %v:\n%s", least, got, &out)
		}
		if err := n.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if text := out.String(); !strings.Contains(text, "sandbox level=") || !strings.Contains(text, "bubblewrap is not installed") {
			t.Errorf("%s: the level and its reason are missing in\n%s", least, text)
		}
		if text := out.String(); !ready && !strings.Contains(text, "below full, the least of this host") {
			t.Errorf("the reason of the wait is missing in\n%s", text)
		}
	}
}
