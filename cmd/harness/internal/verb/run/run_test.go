package run_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestGeneratedIDsAreShort(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "go"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if id := f.Starts[0].GetRunId(); !harnesstest.GeneratedID().MatchString(id) {
		t.Errorf("the run is called %q", id)
	}
}
