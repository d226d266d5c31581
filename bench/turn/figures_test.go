package turn

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
)

// figures of one side, a turn.
type figures struct {
	micros, appends, bytes, writes, flushes float64
	perTurn                                 []float64
}

// oneTurn is a turn's records and how long the mesh took for it.
type oneTurn struct {
	records []runlog.Entry
	mesh    time.Duration
}

// split cuts a log into turns. A turn reaches from the record behind one stop
// decision to the next one. The time between the two is the turn's, less what
// the model, the tools and the making of the request took.
func split(b *testing.B, entries []runlog.Entry) []oneTurn {
	b.Helper()
	var all []oneTurn
	var records []runlog.Entry
	var from time.Time
	var elsewhere time.Duration
	for _, e := range entries {
		records = append(records, e)
		if r := e.Record.GetJournal().GetModelResponded(); r != nil {
			elsewhere += r.GetLatency().AsDuration() + r.GetPreparation().AsDuration()
		}
		if f := e.Record.GetJournal().GetToolFinished(); f != nil {
			elsewhere += f.GetDuration().AsDuration()
		}
		if e.Record.GetStep().GetFrom() == "stopdecision" {
			at := e.Record.GetCommitTime().AsTime()
			if !from.IsZero() {
				all = append(all, oneTurn{records: records, mesh: at.Sub(from) - elsewhere})
			}
			from, records, elsewhere = at, nil, 0
		}
	}
	if len(all) < late+window {
		b.Fatalf("the log holds %d turns, want %d", len(all), late+window)
	}
	return all
}

// between is the median time between records of two kinds, a line each: where
// a turn's time goes.
func between(all []oneTurn) string {
	gaps := map[string][]float64{}
	for _, t := range all {
		for i := 1; i < len(t.records); i++ {
			from, to := t.records[i-1].Record, t.records[i].Record
			key := fmt.Sprintf("%-14s → %s", kindOf(from), kindOf(to))
			gaps[key] = append(gaps[key], float64(to.GetCommitTime().AsTime().Sub(from.GetCommitTime().AsTime()).Microseconds()))
		}
	}
	var lines []string
	for key, values := range gaps {
		lines = append(lines, fmt.Sprintf("%6.0f µs  %s", median(values), key))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func kindOf(r *harnessv1.Record) string {
	if step := r.GetStep(); step != nil {
		return "to " + step.GetTo()
	}
	m := r.GetJournal().ProtoReflect()
	return string(m.WhichOneof(m.Descriptor().Oneofs().ByName("entry")).Name())
}

func sum(all []oneTurn, spent effort) figures {
	f := figures{perTurn: make([]float64, len(all))}
	for i, t := range all {
		f.perTurn[i] = float64(t.mesh.Microseconds())
		f.appends += float64(len(t.records)) / float64(len(all))
		f.bytes += turnBytes(t) / float64(len(all))
	}
	f.micros = median(f.perTurn)
	f.writes, f.flushes = float64(spent.writes)/float64(len(all)), float64(spent.flushes)/float64(len(all))
	return f
}

func (f figures) median(_ []oneTurn, from int) float64 { return median(f.perTurn[from : from+window]) }

func turnBytes(t oneTurn) float64 {
	n := 0
	for _, e := range t.records {
		n += proto.Size(e.Record)
	}
	return float64(n)
}

func medianOf(all []oneTurn, value func(oneTurn) float64) float64 {
	values := make([]float64, len(all))
	for i, t := range all {
		values[i] = value(t)
	}
	return median(values)
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func largestSnapshot(entries []runlog.Entry) int {
	largest := 0
	for _, e := range entries {
		if s := e.Record.GetStep().GetSnapshot(); s != nil {
			largest = max(largest, proto.Size(s))
		}
	}
	return largest
}

// appendBare appends the same records, turn by turn, to an empty log: fenced,
// one after the other, and nothing else.
func appendBare(b *testing.B, all []oneTurn, mode string) figures {
	b.Helper()
	dir := b.TempDir()
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: dir, SyncAlways: mode == "always"})
	must(b, err)
	defer server.Stop()
	ctx := context.Background()
	log, err := server.Open(ctx, jetstream.Config{}, jetstream.Layout{})
	must(b, err)
	defer log.Close()
	f := figures{perTurn: make([]float64, len(all))}
	var newest runlog.Entry
	before := effortOf(b, os.Getpid(), dir)
	for i, t := range all {
		copies := make([]runlog.Entry, len(t.records))
		for j, e := range t.records {
			copies[j] = runlog.Entry{Record: proto.CloneOf(e.Record)}
			copies[j].Record.Writer.Nonce = rand.Uint64()
		}
		start := time.Now()
		for _, e := range copies {
			runlog.Link(e.Record, newest)
			e.Sequence, err = log.Append(ctx, e.Record)
			must(b, err)
			newest = runlog.Entry{Header: runlog.HeaderOf(e.Record), Record: e.Record, Sequence: e.Sequence}
		}
		f.perTurn[i] = float64(time.Since(start).Nanoseconds()) / 1000
		f.appends += float64(len(copies)) / float64(len(all))
		f.bytes += turnBytes(oneTurn{records: copies}) / float64(len(all))
	}
	spent := effortOf(b, os.Getpid(), dir).minus(before)
	f.micros = median(f.perTurn)
	f.writes, f.flushes = float64(spent.writes)/float64(len(all)), float64(spent.flushes)/float64(len(all))
	return f
}

// effort is what the kernel counts: write calls of a process, and flushes of
// the block device under a directory, which is what a sync comes down to. Both
// are 0 where the kernel does not say.
type effort struct{ writes, flushes uint64 }

func (e effort) minus(o effort) effort { return effort{e.writes - o.writes, e.flushes - o.flushes} }

func effortOf(b *testing.B, pid int, dir string) effort {
	b.Helper()
	var e effort
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			if n, ok := strings.CutPrefix(lines.Text(), "syscw: "); ok {
				e.writes, _ = strconv.ParseUint(n, 10, 64)
			}
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err == nil {
		const flushesField = 15 // of the block layer's statistics
		path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev))
		if data, err := os.ReadFile(path); err == nil {
			if fields := strings.Fields(string(data)); len(fields) > flushesField {
				e.flushes, _ = strconv.ParseUint(fields[flushesField], 10, 64)
			}
		}
	}
	return e
}
