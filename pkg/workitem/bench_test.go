package workitem_test

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// sixty returns the ledger of a long run: 60 items, half of them finished, some with
// artifacts, one in revision.
func sixty(b *testing.B) *ledger {
	l := &ledger{}
	for n := range 59 {
		id := fmt.Sprintf("w%d", n+1)
		apply(b, l, workitem.Add, "title", fmt.Sprintf("Read each file of part %d and list what it exports", n), "notes", "Begin with the largest one.")
		if n%2 == 0 {
			apply(b, l, workitem.Update, "id", id, "status", "DONE")
			apply(b, l, workitem.SetArtifact, "id", id, "content", fmt.Sprintf("Part %d exports nothing.", n))
		}
	}
	apply(b, l, workitem.FlagRevision, "id", "w1", "reason", "It does export something.")
	return l
}

func BenchmarkState(b *testing.B) {
	l := sixty(b)
	usage := []*harnessv1.ToolUsage{{Tool: "read_file", Calls: 40}, {Tool: "list_directory", Calls: 7}, {Tool: "work_item_update", Calls: 60}, {Tool: "run_command", Calls: 3}}
	b.ReportAllocs()
	sum := uint64(0)
	for b.Loop() {
		sum += uint64(len(workitem.State(l, usage, 4))) + uint64(len(workitem.Statuses(l))) + workitem.ShownHash(l)
	}
	if sum == 0 {
		b.Fatal("nothing was shown")
	}
}

func BenchmarkApply(b *testing.B) {
	l := sixty(b)
	b.ReportAllocs()
	for status := "DONE"; b.Loop(); {
		if out := applyTool(l, workitem.Update, `{"id":"w30","status":"`+status+`"}`); out.IsError {
			b.Fatal(out.Result)
		}
		if status == "DONE" {
			status = "PENDING"
		} else {
			status = "DONE"
		}
	}
}
