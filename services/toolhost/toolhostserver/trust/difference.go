package trust

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// instructs reports whether agents are instructed or set up by a file.
func instructs(path string) bool { return sandbox.PlaceOf(path).Instructs() }

// Difference returns what differs between two contents, for a person: a unified diff in which nothing
// is hidden.
func Difference(before, after Version) string {
	switch {
	case !after.Kept:
		return fmt.Sprintf("The file is no text of at most %d bytes, or cannot be read. Read it before you accept it.\n", maxText)
	case before.Exists() && !before.Kept:
		return "What it was before is not known. It is:\n" + content.Visible(string(after.Text))
	}
	diff, _ := toolhost.Diff(string(before.Text), string(after.Text))
	if before.Link != after.Link {
		diff = fmt.Sprintf("It leads to %q instead of %q.\n", after.Link, before.Link) + diff
	}
	return content.Visible(diff)
}
