package turn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
)

// The scenario.
const (
	files    = 200
	turns    = 1100
	fileSize = 1200
	early    = 10   // medians are taken over the 100 turns from here
	late     = 1000 // and over the 100 turns from here
	window   = 100
)

// BenchmarkTurnOverhead runs the scenario once per iteration and reports the
// last one: mesh and floor in microseconds a turn and their ratio, growth as
// late over early, and on both sides appends, bytes, write calls and device
// flushes a turn. Traced means that every span goes to a collector in the process of the
// benchmark, on the same machine.
func BenchmarkTurnOverhead(b *testing.B) {
	harness := build(b)
	for _, scenario := range []struct{ mode, traced string }{{mode: "interval"}, {mode: "interval", traced: ",traced"}, {mode: "always"}} {
		mode := scenario.mode
		b.Run("sync="+mode+scenario.traced, func(b *testing.B) {
			var env []string
			if scenario.traced != "" {
				collector := oteltest.Start(b)
				env = collector.Env()
				defer func() { b.Logf("%d spans", len(collector.Spans())) }()
			}
			var mesh, floor figures
			var growth, bytesGrowth float64
			var snapshot int
			var where string
			for range b.N {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				data := filepath.Join(b.TempDir(), "data")
				spent := runMesh(ctx, b, harness, data, mode, env)
				records := readLog(ctx, b, data, benched)
				b.StopTimer()
				cancel()

				all := split(b, records)
				mesh = sum(all, spent)
				floor = appendBare(b, all, mode)
				growth = mesh.median(all, late) / mesh.median(all, early)
				bytesGrowth = medianOf(all[late:late+window], turnBytes) / medianOf(all[early:early+window], turnBytes)
				snapshot, where = largestSnapshot(records), between(all)
				b.StartTimer()
			}
			b.ReportMetric(mesh.micros, "mesh-µs/turn")
			b.ReportMetric(floor.micros, "floor-µs/turn")
			b.ReportMetric(mesh.micros/floor.micros, "ratio")
			b.ReportMetric(growth, "time-1000/10")
			b.ReportMetric(bytesGrowth, "bytes-1000/10")
			b.ReportMetric(float64(snapshot), "snapshot-max-B")
			b.ReportMetric(0, "ns/op")
			report(b, "mesh", mesh)
			report(b, "floor", floor)
			b.Logf("median time between records, the model, the tools and the request included:\n%s", where)
		})
	}
}

func report(b *testing.B, side string, f figures) {
	b.Logf("%-5s %8.0f µs/turn  %4.1f appends  %6.0f bytes  %5.1f write calls  %5.1f device flushes, a turn",
		side, f.micros, f.appends, f.bytes, f.writes, f.flushes)
}

// workspace writes the files and the script of the scenario.
func workspace(b *testing.B) (dir, script string) {
	dir = b.TempDir()
	for i := range files {
		text := ""
		for line := 0; len(text) < fileSize; line++ {
			text += fmt.Sprintf("file %03d line %02d says %x\n", i, line, (i*7919+line*104729)%1000003)
		}
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d.txt", i)), []byte(text), 0o600))
	}
	script = filepath.Join(b.TempDir(), "script.yaml")
	yaml := "turns:\n"
	for i := range turns {
		yaml += fmt.Sprintf("  - {text: Looking., calls: [{name: read_file, arguments: {path: f%03d.txt}}], usage: {input_tokens: 900, output_tokens: 20}}\n", i%files)
	}
	yaml += "  - {calls: [{name: work_complete, arguments: {summary: done}}], usage: {input_tokens: 900, output_tokens: 20}}\n"
	must(b, os.WriteFile(script, []byte(yaml), 0o600))
	return dir, script
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
