package toolhost

import (
	"errors"
	"path"
	"regexp"
	"strings"
	"sync"
)

// GitFolder returns the folder that the content of a .git file names, or "" if it names
// none.
func GitFolder(content string) string {
	folder, ok := strings.CutPrefix(content, "gitdir:")
	if !ok || strings.ContainsRune(folder, 0) {
		return ""
	}
	return strings.TrimSpace(folder)
}

var (
	sha256Format = pattern(`(?mi)^[ \t]*objectformat[ \t]*=[ \t]*"?sha256"?[ \t\r]*$`)
	otherRefs    = pattern(`(?mi)^[ \t]*refstorage[ \t]*=[ \t]*"?reftable"?[ \t\r]*$`)
	ignoredModes = pattern(`(?mi)^[ \t]*filemode[ \t]*=[ \t]*"?(false|no|off|0)"?[ \t\r]*$`)
)

// pattern returns a function that compiles an expression at its first call.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// GitConfig returns a safe configuration to use instead of a repository's own, theirs. It
// copies only how files are stored, so no setting in it can run a program. It returns an
// error if references are not stored as files: they cannot be read through links.
func GitConfig(theirs string) (string, error) {
	if otherRefs().MatchString(theirs) {
		return "", errors.New("unsupported repository: its references are in a reftable")
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
	if ignoredModes().MatchString(theirs) {
		config += "\tfilemode = false\n"
	}
	if sha256Format().MatchString(theirs) {
		config += "[extensions]\n\tobjectformat = sha256\n"
	}
	return config, nil
}

// GitStatus returns git's arguments to list the changes below its working directory. With
// them, git writes nothing, runs no program and enters no submodule.
func GitStatus() []string {
	return append(GitOptions(), "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames", "--", ".")
}

// GitOptions returns git's options before a command. With them it runs no program of a
// repository.
func GitOptions() []string {
	return []string{
		"--no-optional-locks", "--no-pager", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
	}
}

// GitEnvironment returns git's environment without PATH. It turns off all other
// configuration, the network and prompts.
func GitEnvironment() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C",
	}
}

// ParseGitStatus returns the paths below folder in the output of GitStatus, relative to
// folder. folder is relative to the repository, "." for all of it. An incomplete path at
// the end is left out.
func ParseGitStatus(output, folder string) []string {
	below := ""
	if folder = path.Clean(folder); folder != "." {
		below = folder + "/"
	}
	var paths []string
	for {
		entry, rest, complete := strings.Cut(output, "\x00")
		if !complete {
			return paths
		}
		output = rest
		if len(entry) < 4 || entry[2] != ' ' { // XY PATH
			continue
		}
		if name, ok := strings.CutPrefix(entry[3:], below); ok && name != "" {
			paths = append(paths, name)
		}
	}
}
