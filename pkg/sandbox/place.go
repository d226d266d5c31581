package sandbox

import (
	"path"
	"slices"
	"strings"
)

// Kinds of places by which programs run outside of the sandbox, or agents are instructed.
const (
	placeGit          = "a file of git, which runs programs for its user that its configuration and hooks name"
	placeHook         = "a hook or its configuration, which git runs for its user"
	placeEnvironment  = "a script that the shell of the user may run"
	placeEditor       = "a setting or task of an editor, which runs programs for its user"
	placeAgent        = "a file that sets up agents"
	placeInstructions = "a file that instructs agents"
)

// placeNames are the names of files and folders, in lower case.
var placeNames = map[string]string{
	".git": placeGit, ".gitconfig": placeGit,
	".husky": placeHook, ".githooks": placeHook, ".git-hooks": placeHook,
	".pre-commit-config.yaml": placeHook, ".pre-commit-config.yml": placeHook,
	".envrc":  placeEnvironment,
	".vscode": placeEditor, ".idea": placeEditor, ".zed": placeEditor, ".fleet": placeEditor, ".devcontainer": placeEditor,
	".devcontainer.json": placeEditor, ".exrc": placeEditor, ".nvimrc": placeEditor, ".nvim.lua": placeEditor, ".vimrc": placeEditor,
	".lvimrc": placeEditor, ".dir-locals.el": placeEditor, ".dir-locals-2.el": placeEditor,
	".harness": placeAgent, ".claude": placeAgent, ".codex": placeAgent, ".cursor": placeAgent, ".gemini": placeAgent, ".agents": placeAgent,
	".mcp.json": placeAgent,
	"agents.md": placeInstructions, "agents.override.md": placeInstructions, "claude.md": placeInstructions, "claude.local.md": placeInstructions,
	"gemini.md": placeInstructions, "copilot-instructions.md": placeInstructions, "skill.md": placeInstructions, ".cursorrules": placeInstructions,
}

// placeFiles are the beginnings of file names before .yaml and the like.
var placeFiles = map[string]string{"agent": placeAgent, "contract": placeAgent, "lefthook": placeHook, ".lefthook": placeHook}

// Guarded returns what a path is by which programs run outside of the sandbox, or by which
// agents are set up; empty for another path. Tools that write files ask before they write
// such a one. Case does not count, as on some file systems.
func Guarded(file string) string {
	parts := strings.Split(strings.ToLower(path.Clean(strings.ReplaceAll(file, "\\", "/"))), "/")
	for _, part := range parts {
		if what := placeNames[part]; what != "" {
			return what
		}
	}
	name := parts[len(parts)-1]
	extension := path.Ext(name)
	switch {
	case extension == ".code-workspace":
		return placeEditor
	case !slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, extension):
		return ""
	}
	stem := strings.TrimSuffix(name, extension)
	if what := placeFiles[stem]; what != "" {
		return what
	}
	switch path.Ext(stem) { // reviewer.agent.yaml
	case ".agent", ".contract":
		return placeAgent
	}
	return ""
}
