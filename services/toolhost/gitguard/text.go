package gitguard

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxName bounds a name in a text for the model, in bytes, maxNames the names.
	maxName  = 120
	maxNames = 8
)

// Text returns the note in the result of a call about files that were put back; empty for none.
func Text(fixes []Fix) string {
	var names, lost []string
	for _, f := range fixes {
		names = append(names, f.Names...)
		if f.Lost {
			lost = append(lost, f.Names...)
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("[Put back as before the call: %s. Git runs programs outside of the sandbox by these, so a call cannot change them. "+
		"If the task needs the change, make it with write_file or edit_file, which ask a person, or ask the user to make it.", list(names))
	if len(lost) > 0 {
		text += fmt.Sprintf(" Too large to be put back, and removed: %s. Tell the user.", list(lost))
	}
	return text + "]"
}

func list(names []string) string {
	for i, name := range slices.Backward(names) {
		if slices.Contains(names[:i], name) {
			names = slices.Delete(names, i, i+1)
		}
	}
	if more := len(names) - maxNames; more > 0 {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// clip returns a name on one line, cut to a length that a text for the model can have.
func clip(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}

// FailedText returns the note in the result of a call about files that could not be put back;
// empty for none.
func FailedText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" [Could not be put back: %s. Tell the user before you do anything else: git may run programs by these.]", list(names))
}

// StoppedText returns the note in the result of a call that was stopped after files were put back so often
// while it ran.
func StoppedText(restores int) string {
	return fmt.Sprintf("[Stopped: what git runs programs by was changed %d times while the command ran, and put back each time. "+
		"Find out which program changes it, and run the command without that.]", restores)
}

// PartialText returns the note in the result of a command in a workspace with more folders than are
// searched; unseen reports that some of them could not be looked at afterwards either.
func PartialText(searched int, unseen bool) string {
	text := fmt.Sprintf("[The workspace has more than %d folders. What commands change in repositories in the others is found at the end of "+
		"the command only, and only what git itself writes into new repositories is kept of it.", searched)
	if unseen {
		text += " There are so many that not all could be looked at: a repository there may run programs. Tell the user."
	}
	return text + "]"
}
