package runstate_test

import (
	"fmt"
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestChangedFilesAreBounded: each path once, at most 64.
func TestChangedFilesAreBounded(t *testing.T) {
	s := &harnessv1.Snapshot{}
	runstate.AddFiles(s, nil, false)
	if s.GetChangedFiles() != nil {
		t.Error("nothing has changed")
	}
	runstate.AddFiles(s, []string{"a", "b", "a"}, false)
	if f := s.GetChangedFiles(); !slices.Equal(f.GetPaths(), []string{"a", "b"}) || f.GetMore() {
		t.Errorf("got %v", f)
	}
	for i := range 100 {
		runstate.AddFiles(s, []string{fmt.Sprint("f", i)}, false)
	}
	if f := s.GetChangedFiles(); len(f.GetPaths()) != 64 || !f.GetMore() {
		t.Errorf("%d paths, more: %v", len(f.GetPaths()), f.GetMore())
	}
	few := &harnessv1.Snapshot{}
	if runstate.AddFiles(few, nil, true); !few.GetChangedFiles().GetMore() {
		t.Error("more is lost")
	}
}
