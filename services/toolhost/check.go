package toolhost

// What a command of the harness itself may read and write, and how much of a file
// the harness may look at, bytes.
const (
	// CheckInputBytes is what it can read from its input at most.
	CheckInputBytes = 4 << 20
	// CheckOutputBytes is what is kept of its output.
	CheckOutputBytes = 64 << 10
	// CheckErrorBytes is what is kept of its error output.
	CheckErrorBytes = 16 << 10
	// CheckTextBytes is what is returned of a file's text at most.
	CheckTextBytes = 1 << 20
)

// checkNote is room for the line that says what was left out, bytes.
const checkNote = 256

// CheckExcerpt keeps the head and, mostly, the tail of an output, so that
// CheckText of it fits into limit bytes.
func CheckExcerpt(limit int) *Excerpt {
	head := limit / 4
	return NewExcerpt(head, limit-head-checkNote)
}

// CheckText is the text of an excerpt, at most limit bytes.
func CheckText(e *Excerpt, limit int) string {
	const hint = "To see all of it, write it to a file."
	text := e.Text(hint)
	if len(text) > limit { // what is not readable takes more room than it had
		text = Cut(text, limit-checkNote, hint)
	}
	return text
}
