package mcptool

import (
	"regexp"
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// realTools are the tools of the real servers, without descriptions.
func realTools(t *testing.T) *Index {
	t.Helper()
	all, err := servertest.RealTools(servertest.RealData("../dialect"))
	if err != nil {
		t.Fatal(err)
	}
	tools := &harnessv1.McpTools{}
	for _, r := range all {
		tools.Tools = append(tools.Tools, &harnessv1.McpTool{
			Server: r.Server, Spec: &harnessv1.ToolSpec{Name: r.FullName(), ParametersSchema: string(r.Schema)}, Definition: &harnessv1.McpDefinition{Tool: r.Name},
		})
	}
	return NewIndex(tools)
}

// TestTheToolThatIsMeantIsFound: among 500 real tools, without their descriptions,
// a sentence finds the tool that it means.
func TestTheToolThatIsMeantIsFound(t *testing.T) {
	t.Parallel()
	x := realTools(t)
	listed := regexp.MustCompile(`(?m)^(mcp__[\w-]+)(\n|:)`)
	within := map[int]int{}
	tasks, err := servertest.RealTasks(servertest.RealData("../dialect"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tasks {
		task, want := r.Task, r.Tool
		if x.Lookup(want) == nil {
			t.Errorf("there is no tool %s", want)
		}
		var names []string
		for _, m := range listed.FindAllStringSubmatch(x.Find(task, nil, func(*harnessv1.McpTool) bool { return true }), -1) {
			names = append(names, m[1])
		}
		place := slices.Index(names, want)
		for _, k := range []int{1, 3, 5, 10} {
			if place >= 0 && place < k {
				within[k]++
			}
		}
		if place < 0 || place >= 3 {
			t.Logf("%q: %s is at %d, after %v", task, want, place+1, names[:min(3, len(names))])
		}
	}
	t.Logf("of %d tasks among %d tools, the tool that is meant is the first for %d, within 3 for %d, 5 for %d, 10 for %d",
		len(tasks), len(x.tools), within[1], within[3], within[5], within[10])
	if within[1] < len(tasks)*9/10 || within[5] < len(tasks) {
		t.Errorf("want nine tenths of them first, and all within 5; see docs/gym.md")
	}
}
