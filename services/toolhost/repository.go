package toolhost

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// GitFolder is the folder that a .git file points to, as it stands in it; empty
// when it is no such file.
func GitFolder(content string) string {
	folder, is := strings.CutPrefix(content, "gitdir:")
	if !is || strings.ContainsRune(folder, 0) {
		return ""
	}
	return strings.TrimSpace(folder)
}

var (
	sha256Format = regexp.MustCompile(`(?mi)^[ \t]*objectformat[ \t]*=[ \t]*"?sha256"?[ \t\r]*$`)
	otherRefs    = regexp.MustCompile(`(?mi)^[ \t]*refstorage[ \t]*=[ \t]*"?reftable"?[ \t\r]*$`)
	ignoredModes = regexp.MustCompile(`(?mi)^[ \t]*filemode[ \t]*=[ \t]*"?(false|no|off|0)"?[ \t\r]*$`)
)

// GitConfig is a configuration of ours in the place of a repository's own, of
// which it takes over what says how files are stored. Nothing in it can run a
// program, whatever the other one says. It fails for a repository whose references
// are no files, which cannot be read through links.
func GitConfig(theirs string) (string, error) {
	if otherRefs.MatchString(theirs) {
		return "", errors.New("the repository keeps its references in a reftable")
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
	if ignoredModes.MatchString(theirs) {
		config += "\tfilemode = false\n"
	}
	if sha256Format.MatchString(theirs) {
		config += "[extensions]\n\tobjectformat = sha256\n"
	}
	return config, nil
}

// GitStatus are the arguments with which git says what has changed below the
// folder that it runs in: nothing is written, no program is run, no submodule
// entered.
func GitStatus() []string {
	return []string{
		"--no-optional-locks", "--no-pager", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
		"status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames", "--", ".",
	}
}

// GitEnvironment is all that git's environment holds beside PATH: no
// configuration from anywhere, no network, no questions.
func GitEnvironment() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C",
	}
}

// ParseGitStatus are the paths below folder in what GitStatus has printed, relative
// to it. folder is relative to the repository, "." for all of it. A last path
// that is cut off is left out.
func ParseGitStatus(output, folder string) []string {
	below := ""
	if folder = path.Clean(folder); folder != "." {
		below = folder + "/"
	}
	var paths []string
	for {
		entry, rest, whole := strings.Cut(output, "\x00")
		if !whole {
			return paths
		}
		output = rest
		if len(entry) < 4 || entry[2] != ' ' { // XY PATH
			continue
		}
		if name, is := strings.CutPrefix(entry[3:], below); is && name != "" {
			paths = append(paths, name)
		}
	}
}
