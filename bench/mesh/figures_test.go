package mesh

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// series are durations of one kind.
type series []time.Duration

// at returns the smallest value that the share q of all does not exceed.
func (s series) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	n := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(n, 1), len(sorted))-1]
}

func (s series) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("n %d  min %v  p50 %v  p99 %v  max %v", len(s), round(s.at(0)), round(s.at(0.5)), round(s.at(0.99)), round(s.at(1)))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// usage is the processor time of processes, by name.
type usage map[string]time.Duration

// processors reads the time of this process, as bench, and of its children: the servers
// together, and each role's workers together. It is empty if the kernel does not report
// it.
func processors(b *testing.B) usage {
	b.Helper()
	const tick = 10 * time.Millisecond // of /proc on every Linux that Go knows
	used := usage{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			continue
		}
		dir := filepath.Dir(path)
		var name string
		switch {
		case filepath.Base(dir) == strconv.Itoa(os.Getpid()):
			name = "bench"
		case fields[1] == strconv.Itoa(os.Getpid()):
			name = roleOf(dir)
		default:
			continue
		}
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		used[name] += time.Duration(user+system) * tick
	}
	return used
}

// roleOf returns the name of a child by its command line.
func roleOf(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return "other"
	}
	args := strings.Split(string(data), "\x00")
	if i := slices.Index(args, "--roles"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return filepath.Base(args[0])
}

// since returns the usage after an earlier reading.
func (u usage) since(before usage) usage {
	d := usage{}
	for name, t := range u {
		d[name] = t - before[name]
	}
	return d
}

// each returns the usage per one of n, by name, the largest first.
func (u usage) each(n int) string {
	if n == 0 || len(u) == 0 {
		return "unknown"
	}
	var names []string
	var total time.Duration
	for name, t := range u {
		total += t
		if t > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return int(u[b] - u[a]) })
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, (u[name]/time.Duration(n)).Microseconds()))
	}
	return fmt.Sprintf("%d µs (%s)", (total / time.Duration(n)).Microseconds(), strings.Join(parts, ", "))
}
