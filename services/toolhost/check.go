package toolhost

// Limits of checks, bytes. A check is a command of the harness, or a file that it reads.
const (
	// CheckInputBytes is the maximum size of a command's input.
	CheckInputBytes = 4 << 20
	// CheckOutputBytes is the maximum size of the standard output in a response.
	CheckOutputBytes = 64 << 10
	// CheckErrorBytes is the maximum size of the standard error in a response.
	CheckErrorBytes = 16 << 10
	// CheckTextBytes is the maximum size of a file's text in a response.
	CheckTextBytes = 1 << 20
)

// checkNoteBytes is reserved for the line about omitted output.
const checkNoteBytes = 256

// CheckExcerpt returns an excerpt that keeps the head and more of the tail of an output.
// CheckText of it has at most limit bytes.
func CheckExcerpt(limit int) *Excerpt {
	head := limit / 4
	return NewExcerpt(head, limit-head-checkNoteBytes)
}

// CheckText returns the text of an excerpt, at most limit bytes.
func CheckText(e *Excerpt, limit int) string {
	const hint = "To see all of it, write it to a file."
	text := e.Text(hint)
	if len(text) > limit { // replaced invalid bytes need more space
		text = Cut(text, limit-checkNoteBytes, hint)
	}
	return text
}
