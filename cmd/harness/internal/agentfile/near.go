package agentfile

import "strings"

// known helps out of an unknown field: with the one that is probably meant, else
// with all that there are.
func known(name string, names []string) string {
	nearest, least := "", 3
	for _, other := range names {
		if d := distance(name, other); d < least && d < len(other)/2 {
			nearest, least = other, d
		}
	}
	if nearest != "" {
		return ": did you mean " + nearest + "?"
	}
	return "; there are " + strings.Join(names, ", ")
}

// distance is how many letters have to be put in, taken out or changed to make one
// word of the other (Levenshtein); words that are too long are far from all.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
