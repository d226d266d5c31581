package show

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestTableWidths(t *testing.T) {
	t.Parallel()
	fixed := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var runs []*harnessv1.Run
	for _, id := range []string{"r", strings.Repeat("r", 26), strings.Repeat("r", 36)} {
		runs = append(runs, &harnessv1.Run{
			RunId: id, Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:tool_calls"},
			TurnCount: 1000, MaxTurns: 1000, Model: strings.Repeat("m", 50), Goal: strings.Repeat("g", 50), UpdateTime: timestamppb.New(fixed),
		})
		for width := 80; width < 200; width++ {
			for line := range strings.Lines(newRunTable(runs, (*harnessv1.Run).GetRunId, fixed).text(width)) {
				if len(line)-1 > width {
					t.Errorf("%d columns, id of %d: a line of %d: %s", width, len(id), len(line)-1, line)
				}
				if runs := strings.Fields(line); !strings.HasPrefix(runs[0], "r") && runs[0] != "RUN" {
					t.Errorf("%d columns: %s", width, line)
				}
			}
		}
	}
}
