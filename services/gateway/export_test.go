package gateway

// Wants reports whether the next record of a run may arrive.
func (t *TreeStream) Wants(run string) bool {
	return t.branches[run] != nil && t.branches[run].entry == nil
}
