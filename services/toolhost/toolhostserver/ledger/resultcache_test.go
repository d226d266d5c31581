package ledger

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

func TestResultCacheIsBounded(t *testing.T) {
	t.Parallel()
	m := newResultCache(10_000)
	for i := range 1000 {
		m.add(string(rune('a'+i%26))+disk.RandomName(4), keptResult{response: &harnessv1.ExecuteToolResponse{Result: strings.Repeat("x", i)}})
		if used := m.results.Used(); used > m.results.Limit() {
			t.Fatalf("%d bytes", used)
		}
	}
	m.add("last", keptResult{response: &harnessv1.ExecuteToolResponse{Result: "x"}})
	if m.get("last").response == nil {
		t.Fatal("the newest result is not cached")
	}
}
