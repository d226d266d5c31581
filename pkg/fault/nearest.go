package fault

import "strings"

// Nearest returns the known name that an unknown one was probably meant to be, for
// "did you mean" hints; empty if none is near enough. Case and the separators _ - .
// and space do not count. Of the rest, at most two letters may be inserted, deleted
// or replaced, and fewer than half of the letters.
func Nearest(name string, known []string) string {
	nearest, least := "", 3
	plain := Plain(name)
	for _, other := range known {
		if d := EditDistance(plain, Plain(other)); d < least && (d == 0 || 2*d < min(len(plain), len(other))) {
			nearest, least = other, d
		}
	}
	return nearest
}

// Plain returns a name in lower case without separators.
func Plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// EditDistance returns the Levenshtein distance of two strings in bytes. Strings
// that differ by more than 64 bytes in length are not compared: the distance is the
// difference.
func EditDistance(a, b string) int {
	if d := max(len(a), len(b)) - min(len(a), len(b)); d > 64 {
		return d
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
