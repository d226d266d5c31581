package tree

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const (
	below      = 8 // children of the root
	grand      = 2 // children of each of these
	commands   = 1 + below + below*grand
	interrupts = 1 // of each side, an iteration
)

// BenchmarkInterruptOfATree reports the time from InterruptRun of a root until its client
// receives run.interrupted, as a ratio to that of one run with as many processes. The
// sub-agents work in worktrees, because only one child may write to a shared workspace.
func BenchmarkInterruptOfATree(b *testing.B) {
	bed := newBed(b)
	var times [2][]time.Duration
	for b.Loop() {
		for range interrupts {
			times[0] = append(times[0], bed.interrupt(bed.tree))
			times[1] = append(times[1], bed.interrupt(bed.single))
		}
	}
	for i, name := range []string{"tree", "floor"} {
		b.Logf("%-5s %d interrupts, median %.0f ms, p99 %.0f ms", name, len(times[i]), millis(share(times[i], 0.5)), millis(share(times[i], 0.99)))
	}
	b.ReportMetric(float64(share(times[0], 0.5))/float64(share(times[1], 0.5)), "p50/floor")
	b.ReportMetric(float64(share(times[0], 0.99))/float64(share(times[1], 0.99)), "p99/floor")
	b.ReportMetric(millis(share(times[0], 0.99)), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// share returns the smallest value that the share q of all does not exceed.
func share(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(q*float64(len(sorted)))), 1)-1]
}

// command returns a call that makes a file whose name starts with marker, n times, each by a
// process that continues for an hour.
func command(marker string, n int) string {
	one := fmt.Sprintf("(mktemp %s-XXXXXX; exec sleep 3600) & ", marker)
	return fmt.Sprintf("{name: run_command, arguments: {command: '%swait'}}", strings.Repeat(one, n))
}

// tree returns a root whose sub-agents, on two levels, each run a command.
func (b *bed) tree(marker, workspace string) *harnessv1.RunSpec {
	delegates := func(n int, to string) string {
		return response(each(n, "{name: "+to+", arguments: {prompt: Do part %d., background: true, isolate: true}}")...)
	}
	leaf := helper(b.script(response(command(marker, 1)), ends))
	middle := helper(b.script(delegates(grand, "helper"), response(command(marker, 1)), ends), leaf)
	middle.Name = "lead"
	root := spec(b.script(delegates(below, "lead"), response(command(marker, 1)), ends), workspace, middle)
	root.Config.Budgets = &harnessv1.Budgets{Runs: proto.Uint32(256)} // a share for each lead, without asking the root, which works
	return root
}

// single returns a run with one command of as many processes.
func (b *bed) single(marker, workspace string) *harnessv1.RunSpec {
	return spec(b.script(response(command(marker, commands)), ends), workspace)
}

// interrupt starts a run, interrupts it when all processes of its commands work, and returns
// how long that took. Then it cancels the run.
func (b *bed) interrupt(scenario func(marker, workspace string) *harnessv1.RunSpec) time.Duration {
	b.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	marker, dir := fmt.Sprintf("begun%d", b.runs), b.repository()
	run := b.start(ctx, scenario(marker, dir))
	stream, err := b.m.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: run})
	b.must(err)
	waittest.Eventually(b.b, "all commands work", func() bool {
		return made(marker, dir, b.m.Data("toolhost")) == commands
	})
	began := time.Now()
	_, err = b.m.Client().InterruptRun(ctx, &harnessv1.InterruptRunRequest{RunId: run})
	b.must(err)
	b.until(stream, func(e *harnessv1.Event) bool { return e.GetRunInterrupted() != nil })
	took := time.Since(began)
	_, err = b.m.Client().CancelRun(ctx, &harnessv1.CancelRunRequest{RunId: run})
	b.must(err)
	b.cost() // waits until all is acknowledged
	return took
}

// made returns how many files below folders start with a marker.
func made(marker string, folders ...string) (n int) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(d.Name(), marker+"-") {
				n++
			}
			return nil // files removed meanwhile do not count
		})
	}
	return n
}

// repository returns a folder with a git repository that ignores the files of commands, so
// that no worktree has those of its caller.
func (b *bed) repository() string {
	b.b.Helper()
	dir := b.b.TempDir()
	b.must(os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("begun*\n"), 0o600))
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", arguments...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.b.Fatalf("git: %v: %s", err, out)
		}
	}
	return dir
}
