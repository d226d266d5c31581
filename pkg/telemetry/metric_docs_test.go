package telemetry

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownAs returns an instrument's name in Prometheus.
func shownAs(i instrument) string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if i.Kind == Counter {
		name += "_total"
	}
	return name
}

func row(i instrument) string {
	labels := strings.ReplaceAll(strings.Join(i.Attributes, ", "), ".", "_")
	kind := string(i.Kind)
	if i.Kind == UpDown {
		kind = string(Gauge)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", shownAs(i), kind, strings.Trim(i.Unit, "{}"), labels, i.Description)
}

// instrumentRow matches a row of a table of names.
var instrumentRow = regexp.MustCompile("^\\| `[a-zA-Z_]+` \\|")

func TestDocumentationListsEachInstrument(t *testing.T) {
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if instrumentRow.MatchString(line) {
			rows[strings.TrimSpace(line)] = true
		}
	}
	for _, i := range instruments() {
		if want := row(i); !rows[want] {
			t.Errorf("docs/metrics.md lacks\n%s", want)
		} else {
			delete(rows, want)
		}
	}
	for r := range rows {
		t.Errorf("docs/metrics.md has a row of no instrument: %s", r)
	}
}

// instruments returns all instruments of a process, by name.
func instruments() []instrument {
	all := []instrument{
		stepDuration, stepsWaiting, waitDuration, hopLatency, redeliveries, takeovers, deadLetters, failures, turns, turnOverhead, turnDuration,
		runsStarted, runsEnded, runsParked, runs,
		modelDuration, modelTokens, modelCached, modelCacheWrites, modelReasoning, modelCost, modelRetries, modelLimit, modelRemaining,
		jobDuration, jobTokens, toolDuration, toolUnknown, toolCalls,
		appends, unsettled, undecided, settled, stale, connected, reconnects, pending, ackPending, redelivering, waiting, streamBytes, streamLimit,
		rpcDuration, rpcStreams, rpcOpen, httpDuration, roleReady, buildInfo,
	}
	all = append(append(all, compactionInstruments()...), qualityInstruments()...)
	slices.SortFunc(all, func(a, b instrument) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// compactionInstruments returns the instruments of contexts and their compaction.
func compactionInstruments() []instrument {
	return []instrument{contextShare, compactionPasses, compactionFreed, compactionDuration, compactionWaits, compactionSummaries}
}

func qualityInstruments() []instrument {
	return []instrument{qualityScore, qualityCostShare, qualityFallbacks, qualityRetries, qualityHealed, qualityDuration, qualityBits, qualityIssueBits, qualityRepetitive}
}
