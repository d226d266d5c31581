package parked

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// childrenOf is the number of sub-agents that each parent waits for.
const childrenOf = 4

const (
	question = `turns:
  - {text: "I have to know one thing.", calls: [{name: ask_user, arguments: {question: "Which colour?"}}], usage: {input_tokens: 900, output_tokens: 20}}
`
	delegation = `turns:
  - {text: "Others have to look.", calls: [CALLS], usage: {input_tokens: 900, output_tokens: 20}}
`
)

// BenchmarkWaitingTrees reports the memory of a mesh with parents that wait for 4 sub-agents each, as ratios to that
// of one with as many runs that wait: the largest over all roles of the live heap and of the process's memory, and those of the
// NATS server. A difference in goroutines fails the benchmark.
func BenchmarkWaitingTrees(b *testing.B) {
	for b.Loop() {
		treesOnce(b, *parents)
	}
}

func treesOnce(b *testing.B, n int) {
	total := n * (1 + childrenOf)
	measured := func(starts int, spec func(bed *bed) func(i int) *harnessv1.RunSpec) (l loads, disk int64) {
		bed := newBed(b)
		bed.parkAll(starts, total, spec(bed))
		bed.restartUntilQuiet()
		l = bed.measureIdle()
		_, dir := natsServer(b)
		disk = onDisk(b, dir)
		for _, role := range meshtest.Roles { // the other mesh has the machine for itself
			bed.m.Process(role).Kill()
		}
		bed.m.Bus.Kill(0)
		return l, disk
	}
	asks := func(bed *bed, model string) *harnessv1.RunSpec {
		return &harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{Model: model}, Workspace: bed.workspace, Goal: content.Inline("Ask for what you need.")}
	}
	single, singleDisk := measured(total, func(bed *bed) func(int) *harnessv1.RunSpec {
		model := "script:" + bed.m.Write("question.yaml", question)
		return func(int) *harnessv1.RunSpec { return asks(bed, model) }
	})
	trees, treesDisk := measured(n, func(bed *bed) func(int) *harnessv1.RunSpec {
		child := "script:" + bed.m.Write("question.yaml", question)
		var calls []string
		for i := range childrenOf {
			calls = append(calls, fmt.Sprintf("{name: helper, arguments: {prompt: Look at part %d.}}", i))
		}
		model := "script:" + bed.m.Write("delegation.yaml", strings.Replace(delegation, "CALLS", strings.Join(calls, ", "), 1))
		return func(int) *harnessv1.RunSpec {
			s := asks(bed, model)
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "helper", Description: "Looks.", Instructions: "Look.", Model: child, ReadOnly: proto.Bool(true)}}
			return s
		}
	})
	sameGoroutines(b, single, trees)
	heap, _ := trees.largestRatio(single, heapOf)
	resident, _ := trees.largestRatio(single, residentOf)
	var lines []string
	for _, name := range append([]string{natsName}, meshtest.Roles...) {
		lines = append(lines, line(name, single[name], trees[name]))
	}
	b.Logf("%d runs | %d parents of %d children each\n%s", total, n, childrenOf, strings.Join(lines, "\n"))
	b.ReportMetric(heap, "heap/runs")
	b.ReportMetric(resident, "rss/runs")
	b.ReportMetric(trees[natsName].heap/single[natsName].heap, "nats-heap/runs")
	b.ReportMetric(trees[natsName].resident/single[natsName].resident, "nats-rss/runs")
	b.ReportMetric(float64(treesDisk)/float64(singleDisk), "disk/runs")
	b.ReportMetric(0, "ns/op")
}
