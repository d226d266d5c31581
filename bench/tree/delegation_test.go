package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	children = 8
	rounds   = 5 // of each side, an iteration
	fileSize = 1200
)

const ends = `{text: "All of it is there.", calls: [{name: work_complete, arguments: {summary: done}}], usage: {input_tokens: 900, output_tokens: 20}}`

// response returns a turn with calls.
func response(calls ...string) string {
	return fmt.Sprintf(`{text: "Looking.", calls: [%s], usage: {input_tokens: 900, output_tokens: 20}}`, strings.Join(calls, ", "))
}

// each returns a call for each of n numbers.
func each(n int, format string) (calls []string) {
	for i := range n {
		calls = append(calls, fmt.Sprintf(format, i))
	}
	return calls
}

// BenchmarkDelegation reports the CPU and the bytes in the stream of a parent with 8 children
// that change nothing, called in one response, as ratios to those of 9 runs of the same turns.
// In the run that replaces the parent, the 8 calls read files.
func BenchmarkDelegation(b *testing.B) {
	bed := newBed(b)
	dir := b.TempDir()
	for i := range children {
		text := strings.Repeat(fmt.Sprintf("file %d has this line\n", i), fileSize/21)
		bed.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600))
	}
	reads := each(children, "{name: read_file, arguments: {path: f%d.txt}}")
	child := bed.script(response(reads[0]), response(reads[1]), ends)
	single := bed.script(response(reads...), ends)
	parent := bed.script(response(each(children, "{name: helper, arguments: {prompt: Do part %d.}}")...), ends)
	reader := helper(child)
	reader.ReadOnly = proto.Bool(true)
	sides := [2][]*harnessv1.RunSpec{{spec(parent, dir, reader)}, {spec(single, dir)}}
	for range children {
		sides[1] = append(sides[1], spec(child, dir))
	}
	for i, specs := range sides { // what every process does once
		bed.delegated(bed.complete(specs)[0], children*(1-i))
	}
	var used [2]cost
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		for range rounds {
			for i, specs := range sides {
				before, began := bed.cost(), time.Now()
				bed.complete(specs)
				took[i] += time.Since(began)
				used[i] = used[i].plus(bed.cost().since(before))
			}
			n++
		}
	}
	for i, name := range []string{"tree", "floor"} {
		b.Logf("%-5s %6.1f ms of CPU, %6d bytes, %6.1f ms from the start to the end, each of %d rounds",
			name, millis(used[i].cpu)/float64(n), used[i].bytes/uint64(n), millis(took[i])/float64(n), n)
	}
	b.ReportMetric(float64(used[0].cpu)/float64(used[1].cpu), "cpu/floor")
	b.ReportMetric(float64(used[0].bytes)/float64(used[1].bytes), "bytes/floor")
	b.ReportMetric(float64(took[0])/float64(took[1]), "time/floor")
	b.ReportMetric(0, "ns/op")
}

// delegated fails the benchmark unless a run has n children, all done after 3 turns.
func (b *bed) delegated(id string, n int) {
	b.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	get := func(id string) *harnessv1.Run {
		r, err := b.m.Client().GetRun(ctx, &harnessv1.GetRunRequest{RunId: id})
		b.must(err)
		return r.GetRun()
	}
	all := get(id).GetChildren()
	if len(all) != n {
		b.b.Fatalf("%s has %d children, want %d", id, len(all), n)
	}
	for _, c := range all {
		if run := get(c.GetRunId()); run.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || run.GetTurnCount() != 3 {
			b.b.Fatalf("a child is not done after 3 turns: %v", run)
		}
	}
}

// complete starts runs and returns their ids when all of them are done, and their children.
func (b *bed) complete(specs []*harnessv1.RunSpec) (ids []string) {
	b.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	watch, err := b.m.Client().WatchRuns(ctx, &harnessv1.WatchRunsRequest{ChangesOnly: true})
	b.must(err)
	first, err := watch.Recv()
	b.must(err)
	if first.GetCaughtUp() == nil {
		b.b.Fatalf("the watch starts with %v", first)
	}
	left := map[string]bool{}
	for _, s := range specs {
		ids = append(ids, b.start(ctx, s))
		left[ids[len(ids)-1]] = true
	}
	for len(left) > 0 {
		r, err := watch.Recv()
		b.must(err)
		switch run := r.GetRun(); run.GetStatus() {
		case harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED:
		case harnessv1.RunStatus_RUN_STATUS_DONE:
			delete(left, run.GetRunId()) // or a child
		default:
			b.b.Fatalf("a run is not done: %v", run)
		}
	}
	return ids
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
