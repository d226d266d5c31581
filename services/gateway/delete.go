package gateway

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// deleted is the reason kind that watchers receive for a deleted run.
const deleted = tree.Deleted

// Expire is tree.Expire.
func Expire(view runlog.View, caller string, now time.Time, writer *harnessv1.Writer) (*harnessv1.Record, error) {
	return tree.Expire(view, caller, now, writer)
}
