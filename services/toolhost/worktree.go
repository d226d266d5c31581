package toolhost

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// FileMode is what git takes a file for. The empty mode means that there is no file.
type FileMode string

// Modes of files, as git writes them.
const (
	NoFile     FileMode = ""
	Regular    FileMode = "100644"
	Executable FileMode = "100755"
	Symlink    FileMode = "120000"
	Submodule  FileMode = "160000"
	Directory  FileMode = "040000"
)

// TreeFile is a file of a workspace or of a worktree. The zero value means that there is none.
type TreeFile struct {
	Mode FileMode
	// Digest is the SHA-256 of the content in hexadecimal; of a link, that of its target, and
	// of a submodule its commit.
	Digest string
	// Size is the bytes of the content.
	Size int64
}

// isContent reports whether the file has a content that can be merged with another.
func (f TreeFile) isContent() bool { return f.Mode == Regular || f.Mode == Executable }

// TrackedFile is an entry of git's index.
type TrackedFile struct {
	Path     string
	Mode     FileMode
	Object   string
	Unmerged bool
}

// ParseTracked reads the output of git ls-files --stage -z. Entries that lead out of the
// workspace or into a .git are left out.
func ParseTracked(output string) []TrackedFile {
	var files []TrackedFile
	for entry := range strings.SplitSeq(output, "\x00") {
		facts, name, found := strings.Cut(entry, "\t")
		fields := strings.Fields(facts)
		if found && len(fields) == 3 && IsTreePath(name) {
			files = append(files, TrackedFile{Path: name, Mode: FileMode(fields[0]), Object: fields[1], Unmerged: fields[2] != "0"})
		}
	}
	return files
}

// IsTreePath reports whether a path, relative to a workspace, can be one of a worktree: it
// stays inside, and no part of it is a .git.
func IsTreePath(name string) bool {
	if name == "" || name != path.Clean(name) || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// FormatTree returns the files of a worktree as ParseTree reads them.
func FormatTree(files map[string]TreeFile) string {
	var b strings.Builder
	for _, name := range sortedNames(files) {
		f := files[name]
		fmt.Fprintf(&b, "%s %s %d %s\x00", f.Mode, f.Digest, f.Size, name)
	}
	return b.String()
}

// ParseTree reads files by their paths.
func ParseTree(text string) (map[string]TreeFile, error) {
	files := map[string]TreeFile{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		fields := strings.SplitN(entry, " ", 4)
		if len(fields) != 4 {
			return nil, errors.New("the list of files is damaged")
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, errors.New("the list of files is damaged")
		}
		files[fields[3]] = TreeFile{Mode: FileMode(fields[0]), Digest: fields[1], Size: size}
	}
	return files, nil
}

// ChangedPaths returns the paths of files that differ, sorted.
func ChangedPaths(before, after map[string]TreeFile) []string {
	changed := map[string]TreeFile{}
	for name, f := range before {
		if after[name] != f {
			changed[name] = f
		}
	}
	for name, f := range after {
		if before[name] != f {
			changed[name] = f
		}
	}
	return sortedNames(changed)
}

// MergeSource is where the content of a merged file is from.
type MergeSource uint8

// Sources of a merged file.
const (
	// FromOurs leaves the file unchanged.
	FromOurs MergeSource = iota
	// FromTheirs takes the changed file, or its absence.
	FromTheirs
	// Combined merges the lines of both.
	Combined
	// Conflict means that it cannot be merged.
	Conflict
)

// MergeFile decides how a file is merged that was base, of which theirs is to be brought
// to ours. mode is the mode of the merged file.
func MergeFile(base, theirs, ours TreeFile) (source MergeSource, mode FileMode) {
	switch {
	case theirs == base || theirs == ours:
		return FromOurs, ours.Mode
	case ours == base:
		return FromTheirs, theirs.Mode
	case !base.isContent() || !theirs.isContent() || !ours.isContent():
		return Conflict, ours.Mode
	}
	mode = ours.Mode
	if theirs.Mode != base.Mode {
		mode = theirs.Mode
	}
	switch {
	case theirs.Digest == base.Digest || theirs.Digest == ours.Digest:
		return FromOurs, mode
	case ours.Digest == base.Digest:
		return FromTheirs, mode
	}
	return Combined, mode
}

// maxMergeNames bounds the paths of each kind in the result of a merge.
const maxMergeNames = 200

// MergeText returns the result of a merge for the model.
func MergeText(run string, changed, added, deleted []string) string {
	if len(changed)+len(added)+len(deleted) == 0 {
		return "Nothing to merge: the workspace has all that run " + run + " changed."
	}
	text := fmt.Sprintf("Merged the work of run %s: %d files changed, %d added, %d deleted.", run, len(changed), len(added), len(deleted))
	for _, list := range []struct {
		what  string
		names []string
	}{{"changed", changed}, {"added", added}, {"deleted", deleted}} {
		if len(list.names) > 0 {
			text += "\n" + list.what + ": " + NameList(list.names)
		}
	}
	return text
}

// NameList returns paths for the model, with those quoted that are not plain text.
func NameList(names []string) string {
	var shown []string
	for i, name := range names {
		if i == maxMergeNames {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		shown = append(shown, PlainName(name))
	}
	return strings.Join(shown, ", ")
}

// PlainName returns a path, quoted if it is not plain text.
func PlainName(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.ContainsAny(name, " ,") {
		return quoted
	}
	return name
}

func sortedNames(files map[string]TreeFile) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxJoined bounds the texts that JoinSome joins.
const maxJoined = 100

// JoinSome joins texts for the model.
func JoinSome(texts []string) string {
	if len(texts) > maxJoined {
		texts = append(slices.Clone(texts[:maxJoined]), fmt.Sprintf("and %d more", len(texts)-maxJoined))
	}
	return strings.Join(texts, ", ")
}
