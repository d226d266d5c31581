package sandbox

import "testing"

func TestGuardedPlaces(t *testing.T) {
	for path, want := range map[string]string{
		".git/config": placeGit, "sub/.git": placeGit, ".GIT/hooks/pre-commit": placeGit, "a/../.git/config": placeGit, "/w/.git/config": placeGit, "x/./.Git/y": placeGit,
		`x\.git\config`: placeGit, ".gitconfig": placeGit, ".husky/pre-commit": placeHook, ".githooks/x": placeHook, "lefthook.yml": placeHook, ".lefthook.toml": placeHook,
		".pre-commit-config.yaml": placeHook, ".envrc": placeEnvironment, "sub/.envrc": placeEnvironment,
		".vscode/tasks.json": placeEditor, ".VSCode/settings.json": placeEditor, ".idea/workspace.xml": placeEditor, ".zed/tasks.json": placeEditor,
		"x.code-workspace": placeEditor, ".devcontainer/devcontainer.json": placeEditor, ".dir-locals.el": placeEditor,
		"agent.yaml": placeAgent, "agents/reviewer.agent.yml": placeAgent, "contract.json": placeAgent, "ci.contract.yaml": placeAgent, ".harness/x": placeAgent, ".mcp.json": placeAgent,
		"AGENTS.md": placeInstructions, "docs/Claude.md": placeInstructions, ".github/copilot-instructions.md": placeInstructions, "skills/a/SKILL.md": placeInstructions,

		"": "", "a.txt": "", ".gitignore": "", ".gitattributes": "", ".github/workflows/ci.yaml": "", "src/hooks/use.ts": "", "Makefile": "", "package.json": "",
		"agent.go": "", "contract.md": "", "agents.mdx": "", "git/config": "", "my.git/config": "", "docs/agent/x.yaml": "",
	} {
		if got := Guarded(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
