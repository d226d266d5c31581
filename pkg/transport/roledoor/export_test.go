package roledoor

import (
	"maps"
	"slices"
)

// Methods returns the methods that a role calls, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(callers)) }
