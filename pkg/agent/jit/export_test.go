package jit

// BuiltInIDs returns the ids of the built-in rules in their order.
func BuiltInIDs() []string {
	var ids []string
	for _, b := range builtIn {
		ids = append(ids, b.id)
	}
	return ids
}
