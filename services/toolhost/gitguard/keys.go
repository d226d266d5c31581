package gitguard

import (
	"slices"
	"strings"
)

// free reports whether calls may set a key in any repository.
func free(key string) bool {
	section, sub, name := splitKey(key)
	switch section {
	case "branch", "user":
		return true
	case "remote":
		return sub != "" && (name == "url" || name == "fetch")
	case "submodule":
		return sub != "" && (name == "url" || name == "active" || name == "branch")
	}
	return false
}

// gits are the keys that git writes into repositories that it makes (init, clone,
// worktree add, submodule add and sparse-checkout of git 2.39), without subsections.
var gits = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
	"core.precomposeunicode", "core.symlinks", "core.sharedrepository", "core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse",
	"receive.denynonfastforwards", "submodule.active", "submodule.alternatelocation", "submodule.alternateerrorstrategy",
	"extensions.objectformat", "extensions.compatobjectformat", "extensions.refstorage", "extensions.partialclone",
	"extensions.preciousobjects", "extensions.worktreeconfig", "extensions.relativeworktrees", "extensions.noop",
	"extensions.submodulepathconfig",
}

// made reports whether calls may have a setting in a repository that they make.
func made(s Setting) bool {
	section, sub, name := splitKey(s.Key)
	switch {
	case free(s.Key) || slices.Contains(gits, s.Key):
		return true
	case section == "remote" && sub != "":
		return slices.Contains([]string{"mirror", "tagopt", "promisor", "partialclonefilter"}, name)
	case section == "submodule" && sub != "" && name == "update":
		return !strings.HasPrefix(s.Value, "!")
	}
	return false
}

// guarded returns the settings that a call may not change.
func guarded(settings []Setting) []Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return free(s.Key) })
}

// Includes returns the paths of the files that settings include.
func Includes(settings []Setting) []string {
	return values(settings, func(section, _, name string) bool {
		return (section == "include" || section == "includeif") && name == "path"
	})
}

// HooksPaths returns the folders of hooks that settings name.
func HooksPaths(settings []Setting) []string {
	return values(settings, func(section, sub, name string) bool { return section == "core" && sub == "" && name == "hookspath" })
}

// WorkTrees returns the folders that settings name as work trees.
func WorkTrees(settings []Setting) []string {
	return values(settings, func(section, sub, name string) bool { return section == "core" && sub == "" && name == "worktree" })
}

func values(settings []Setting, wanted func(section, sub, name string) bool) []string {
	var found []string
	for _, s := range settings {
		if wanted(splitKey(s.Key)) && s.Value != "" {
			found = append(found, s.Value)
		}
	}
	return found
}

// difference returns the keys whose values differ, in the order of their appearance.
func difference(before, after []Setting) []string {
	var keys []string
	for _, s := range slices.Concat(after, before) {
		if !slices.Contains(keys, s.Key) && !slices.Equal(of(before, s.Key), of(after, s.Key)) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

func of(settings []Setting, key string) []Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return s.Key != key })
}
