package toolhost

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	// diffContext is the number of equal lines around a change.
	diffContext = 3
	// maxEdits bounds the lines that the shortest edit has. Beyond them all lines between the
	// first and the last change are replaced.
	maxEdits = 1000
)

// edit is a line of a diff: ' ' for both texts, '-' for the first one, '+' for the second.
type edit struct {
	sign byte
	line string
}

// Diff returns the unified diff of two texts, without a header, and the digest of its hunks
// without their positions. It is empty for equal texts.
func Diff(before, after string) (diff, hunks string) {
	edits := editsOf(diffLines(before), diffLines(after))
	var text strings.Builder
	sum := sha256.New()
	first, second := 1, 1 // lines of the texts at start
	for start := 0; start < len(edits); {
		next := slices.IndexFunc(edits[start:], func(e edit) bool { return e.sign != ' ' })
		if next < 0 {
			break
		}
		from := start + max(next-diffContext, 0)
		first, second = first+from-start, second+from-start
		end := hunkEnd(edits, start+next)
		var body strings.Builder
		removed, added := 0, 0
		for _, e := range edits[from:end] {
			if e.sign != '+' {
				removed++
			}
			if e.sign != '-' {
				added++
			}
			body.WriteByte(e.sign)
			body.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				body.WriteString("\n\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&text, "@@ -%s +%s @@\n%s", span(first, removed), span(second, added), body.String())
		fmt.Fprintf(sum, "%d\n%s", body.Len(), body.String())
		start, first, second = end, first+removed, second+added
	}
	return text.String(), hex.EncodeToString(sum.Sum(nil))
}

// span returns the position of a hunk in one of the texts.
func span(line, count int) string {
	if count == 0 {
		line--
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// hunkEnd returns the end of the hunk of a change: context follows the last change that is not
// farther from the one before than their contexts reach.
func hunkEnd(edits []edit, change int) int {
	last := change
	for i := change; i < len(edits) && i <= last+2*diffContext+1; i++ {
		if edits[i].sign != ' ' {
			last = i
		}
	}
	return min(last+1+diffContext, len(edits))
}

// diffLines returns the lines of a text with their line breaks.
func diffLines(text string) []string { return slices.Collect(strings.Lines(text)) }

// editsOf returns how the lines of a become those of b.
func editsOf(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	edits := signed(nil, ' ', a[:start])
	edits = append(edits, shortest(a[start:len(a)-end], b[start:len(b)-end])...)
	return signed(edits, ' ', a[len(a)-end:])
}

func signed(edits []edit, sign byte, lines []string) []edit {
	for _, line := range lines {
		edits = append(edits, edit{sign, line})
	}
	return edits
}

// shortest returns the shortest edit of a to b, by the algorithm of Myers ("An O(ND) Difference
// Algorithm and Its Variations", 1986), or replaces all lines if it has more than maxEdits.
func shortest(a, b []string) []edit {
	var rows [][]int // of each number of edits: how far into a each diagonal reaches
	reach := map[int]int{1: 0}
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		row := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := reach[k-1] + 1
			if k == -d || k != d && reach[k-1] < reach[k+1] {
				x = reach[k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[k], row[k+d] = x, x
			if x >= len(a) && x-k >= len(b) {
				return walk(a, b, append(rows, row))
			}
		}
		rows = append(rows, row)
	}
	return signed(signed(nil, '-', a), '+', b)
}

// walk returns the edits along the rows of shortest, from the end.
func walk(a, b []string, rows [][]int) []edit {
	var edits []edit
	x, y := len(a), len(b)
	for d := len(rows) - 1; d > 0; d-- {
		before := rows[d-1] // its diagonal k is at k+d-1
		at := func(k int) int {
			if i := k + d - 1; i >= 0 && i < len(before) {
				return before[i]
			}
			return -1
		}
		k := x - y
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		px := at(from)
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			edits = append(edits, edit{' ', a[x]})
		}
		if from == k+1 {
			y--
			edits = append(edits, edit{'+', b[y]})
		} else {
			x--
			edits = append(edits, edit{'-', a[x]})
		}
	}
	for x > 0 {
		x--
		edits = append(edits, edit{' ', a[x]})
	}
	slices.Reverse(edits)
	return edits
}
