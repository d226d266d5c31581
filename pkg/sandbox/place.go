package sandbox

import (
	"path"
	"strings"
)

// Kinds of places by which programs run outside of the sandbox, or agents are instructed.
const (
	placeGit          = "a file of git, which runs programs for its user that its configuration and hooks name"
	placeHook         = "a hook or its configuration, which git runs for its user"
	placeEnvironment  = "a script that the shell of the user may run"
	placePackages     = "a setting of a package manager, which runs programs for its user"
	placeWorkflow     = "a workflow, which a service runs"
	placeVariables    = "variables that programs of the user read"
	placeEditor       = "a setting or task of an editor, which runs programs for its user"
	placeAgent        = "a file that sets up agents"
	placeInstructions = "a file that instructs agents"
)

// Place is what a path is for programs outside of the sandbox. The zero value is no guarded place.
type Place struct {
	// What describes it for people; empty for no guarded place.
	What string
	// Named places are only named in the results of commands that change them. Tools write the others
	// only if a person or a rule allows it.
	Named bool
}

// Instructs reports whether agents are instructed or set up by it.
func (p Place) Instructs() bool { return p.What == placeAgent || p.What == placeInstructions }

// placeNames are the names of files and folders, in lower case.
var placeNames = map[string]string{
	".git": placeGit, ".gitconfig": placeGit,
	".husky": placeHook, ".githooks": placeHook, ".git-hooks": placeHook,
	".pre-commit-config.yaml": placeHook, ".pre-commit-config.yml": placeHook,
	".envrc": placeEnvironment, ".mise.toml": placeEnvironment,
	".pnpmfile.cjs": placePackages,
	".vscode":       placeEditor, ".idea": placeEditor, ".zed": placeEditor, ".fleet": placeEditor, ".devcontainer": placeEditor,
	".devcontainer.json": placeEditor, ".exrc": placeEditor, ".nvimrc": placeEditor, ".nvim.lua": placeEditor, ".vimrc": placeEditor,
	".lvimrc": placeEditor, ".dir-locals.el": placeEditor, ".dir-locals-2.el": placeEditor,
	".harness": placeAgent, ".claude": placeAgent, ".codex": placeAgent, ".cursor": placeAgent, ".gemini": placeAgent, ".agents": placeAgent,
	".kiro": placeAgent, ".junie": placeAgent, ".roo": placeAgent, ".continue": placeAgent,
	".mcp.json": placeAgent, "mcp.json": placeAgent, "opencode.json": placeAgent,
	"hooks.yaml": placeAgent, "hooks.yml": placeAgent, "rules.yaml": placeAgent, "rules.yml": placeAgent,
	"agents.md": placeInstructions, "agents.override.md": placeInstructions, "agent.md": placeInstructions,
	"claude.md": placeInstructions, "claude.local.md": placeInstructions,
	"gemini.md": placeInstructions, "copilot-instructions.md": placeInstructions, "skill.md": placeInstructions,
	".cursorrules": placeInstructions, ".windsurfrules": placeInstructions, ".clinerules": placeInstructions,
}

// placesInGitHub are the names of files and folders within a folder .github.
var placesInGitHub = map[string]string{"instructions": placeInstructions, "workflows": placeWorkflow}

// namedFiles are files that are only named. A folder with such a name, such as a virtual environment
// .env, is no place.
var namedFiles = map[string]string{".env": placeVariables, ".npmrc": placePackages, ".yarnrc.yml": placePackages}

// placeStems are the beginnings of file names before .yaml and the like.
var placeStems = map[string]string{"agent": placeAgent, "contract": placeAgent, "lefthook": placeHook, ".lefthook": placeHook}

// Guarded returns what a path is by which programs run outside of the sandbox, or by which
// agents are set up; empty for another path, and for one that is only named. Tools that write
// files ask before they write such a one.
func Guarded(file string) string {
	if p := PlaceOf(file); !p.Named {
		return p.What
	}
	return ""
}

// PlaceOf returns what a path is. Names count in all forms that some file system takes for them:
// of another case, in another normal form of Unicode, with code points that HFS+ and ext4 ignore,
// with what NTFS drops at the end, and in short names of NTFS.
func PlaceOf(file string) Place {
	parts := strings.Split(path.Clean(strings.ReplaceAll(file, "\\", "/")), "/")
	above := ""
	for i, part := range parts {
		name := foldName(part)
		parts[i] = name
		what := placeNames[name]
		if what == "" {
			what = shortNames[name]
		}
		if what == "" && above == ".github" {
			what = placesInGitHub[name]
		}
		if what != "" {
			return Place{What: what, Named: what == placeWorkflow}
		}
		above = name
	}
	return placeFile(parts[len(parts)-1])
}

// placeFile returns what a file is by its name, which is folded.
func placeFile(name string) Place {
	if what := namedFiles[name]; what != "" {
		return Place{What: what, Named: true}
	}
	extension := path.Ext(name)
	if strings.HasSuffix(name, ".mcp.lock") { // the pins of an agent file
		return Place{What: placeAgent}
	}
	switch extension {
	case ".code-workspace":
		return Place{What: placeEditor}
	case ".yaml", ".yml", ".json", ".toml":
	default:
		return Place{}
	}
	stem := strings.TrimSuffix(name, extension)
	if what := placeStems[stem]; what != "" {
		return Place{What: what}
	}
	switch path.Ext(stem) { // reviewer.agent.yaml
	case ".agent", ".contract":
		return Place{What: placeAgent}
	}
	return Place{}
}
