package workspace

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// maxListedPerFolder is the maximum number of entries of one lower folder in a listing.
const maxListedPerFolder = 30

// unlisted are folders that a listing names without their content.
var unlisted = []string{".git", "node_modules", ".venv", "__pycache__"}

// Listing returns the names in the workspace, two levels deep, one a line, at most
// limit entries. The upper level has precedence.
func (w *Workspace) Listing(limit int) (string, error) {
	files := w.Root.FS()
	hidden := w.hiddenName()
	if hidden == "." {
		return "", errHidden
	}
	without := func(folder string, entries []fs.DirEntry) []fs.DirEntry {
		return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return folder+e.Name() == hidden })
	}
	upper, err := readSorted(files, ".")
	if err != nil {
		return "", err
	}
	upper = without("", upper)
	var text strings.Builder
	shown := min(len(upper), limit)
	left := limit - shown
	for _, entry := range upper[:shown] {
		text.WriteString(listingLine("", entry))
		if !entry.IsDir() || slices.Contains(unlisted, entry.Name()) || left == 0 {
			continue
		}
		lower, err := readSorted(files, entry.Name())
		if err != nil {
			continue
		}
		lower = without(entry.Name()+"/", lower)
		n := min(len(lower), maxListedPerFolder, left)
		left -= n
		for _, e := range lower[:n] {
			text.WriteString(listingLine(entry.Name()+"/", e))
		}
		if more := len(lower) - n; more > 0 {
			fmt.Fprintf(&text, "%s/… %d more\n", entry.Name(), more)
		}
	}
	if more := len(upper) - shown; more > 0 {
		fmt.Fprintf(&text, "… %d more\n", more)
	}
	return text.String(), nil
}

func listingLine(folder string, entry fs.DirEntry) string {
	line := folder + toolhost.Clip(entry.Name(), 255)
	if entry.IsDir() {
		line += "/"
	}
	return line + "\n"
}
