package console

import (
	"cmp"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Commit returns the commit that the program is built from. Where that does not identify the
// program, its file's time follows.
func Commit() string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	var linked time.Time
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			linked = info.ModTime()
		}
	}
	return commitText(settings, linked)
}

// commitText returns a commit from the settings of a build and the time of its file.
func commitText(settings map[string]string, linked time.Time) string {
	revision, modified := settings["vcs.revision"], settings["vcs.modified"] == "true"
	text := cmp.Or(revision, "unknown")
	if modified {
		text += " (modified)"
	}
	if (revision == "" || modified) && !linked.IsZero() {
		text += " built " + linked.UTC().Format(time.RFC3339)
	}
	return text
}

// Build names the version of this program and its commit.
func (a *Console) Build() string {
	return a.Version + " " + shortened(Commit())
}

// shortened returns the beginning of a commit, with what follows its id.
func shortened(commit string) string {
	id, more, _ := strings.Cut(commit, " ")
	return strings.TrimSpace(id[:min(len(id), 12)] + " " + more)
}

// VersionOf returns the version of this program: linked, which the linker has set, else that of the
// module from which `go install` has built it.
func VersionOf(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return linked
	}
	return versionText(linked, info.Main)
}

// unlinked is the version of a program for which the linker has set none.
const unlinked = "dev"

// versionText returns a version. Only a module from a proxy has a checksum: that of a checkout
// names no release.
func versionText(linked string, built debug.Module) string {
	if linked != unlinked || built.Sum == "" || built.Version == "" {
		return linked
	}
	return built.Version
}
