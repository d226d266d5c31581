package sim

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// trace is the list of steps of a simulation.
type trace struct {
	began time.Time
	steps []event
	hash  uint64
}

// event is a step of the trace. It becomes text only when it is printed.
type event struct {
	at   time.Duration
	who  string
	kind kind
	run  string
	text string
	a, b uint64
	fate fate
	note string
}

const prime = 1099511628211

func (t *trace) add(e event) {
	e.at = time.Since(t.began)
	t.steps = append(t.steps, e)
	h := t.hash
	for _, s := range []string{e.who, e.run, e.text} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	for _, n := range []uint64{uint64(e.at), uint64(e.kind), e.a, e.b, uint64(e.fate)} {
		h = (h ^ n) * prime
	}
	t.hash = h
}

func (t *trace) words(n int) []string {
	steps := t.steps
	if n > 0 && len(steps) > n {
		steps = steps[len(steps)-n:]
	}
	lines := make([]string, 0, len(steps))
	for i, e := range steps {
		var b strings.Builder
		fmt.Fprintf(&b, "%5d %10s  %-14s %s", len(t.steps)-len(steps)+i+1, e.at.Round(time.Millisecond), e.who, e.kind)
		if e.run != "" {
			fmt.Fprintf(&b, " %s", e.run)
		}
		if e.text != "" {
			fmt.Fprintf(&b, " %s", e.text)
		}
		if e.a != 0 || e.b != 0 {
			fmt.Fprintf(&b, " #%d", e.a)
			if e.b != 0 {
				fmt.Fprintf(&b, "/%d", e.b)
			}
		}
		if e.note != "" {
			fmt.Fprintf(&b, " → %s", e.note)
		}
		if e.fate != through {
			fmt.Fprintf(&b, "  [%s]", fateNames[e.fate])
		}
		lines = append(lines, b.String())
	}
	return lines
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
