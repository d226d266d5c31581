package view

// Unchanged reports whether the plan shows a message unchanged, images and documents included.
// A message that the index does not have is not shown.
func (r *Rules) Unchanged(id uint64) bool {
	e := r.x.Entry(id)
	if e == nil {
		return false
	}
	action, _ := r.Action(e)
	return action == include && !r.MediaCleared(e)
}
