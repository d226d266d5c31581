package sandbox

import "testing"

func TestGuardedPlaces(t *testing.T) {
	for path, want := range map[string]string{
		".git/config": placeGit, "sub/.git": placeGit, ".GIT/hooks/pre-commit": placeGit, "a/../.git/config": placeGit, "/w/.git/config": placeGit, "x/./.Git/y": placeGit,
		`x\.git\config`: placeGit, ".gitconfig": placeGit, ".husky/pre-commit": placeHook, ".githooks/x": placeHook, "lefthook.yml": placeHook, ".lefthook.toml": placeHook,
		".pre-commit-config.yaml": placeHook, ".envrc": placeEnvironment, "sub/.envrc": placeEnvironment,
		".vscode/tasks.json": placeEditor, ".VSCode/settings.json": placeEditor, ".idea/workspace.xml": placeEditor, ".zed/tasks.json": placeEditor,
		"x.code-workspace": placeEditor, ".devcontainer/devcontainer.json": placeEditor, ".dir-locals.el": placeEditor,
		"agent.yaml": placeAgent, "agents/reviewer.agent.yml": placeAgent, "contract.json": placeAgent, "ci.contract.yaml": placeAgent, ".harness/x": placeAgent, ".mcp.json": placeAgent, "agent.yaml.mcp.lock": placeAgent,
		"AGENTS.md": placeInstructions, "docs/Claude.md": placeInstructions, ".github/copilot-instructions.md": placeInstructions, "skills/a/SKILL.md": placeInstructions,

		".windsurfrules": placeInstructions, ".clinerules/a.md": placeInstructions, "AGENT.md": placeInstructions, ".github/instructions/a.instructions.md": placeInstructions,
		".kiro/hooks/a": placeAgent, ".junie/guidelines.md": placeAgent, ".roo/rules/a.md": placeAgent, ".continue/config.yaml": placeAgent,
		"mcp.json": placeAgent, "opencode.json": placeAgent, "hooks.yaml": placeAgent, "rules.yaml": placeAgent, ".mise.toml": placeEnvironment, ".pnpmfile.cjs": placePackages,

		".hg/hgrc": placeGit, "sub/.hg/hgrc": placeGit, ".jj/repo/config.toml": placeGit, ".jj/workspace-config.toml": placeGit, ".sl/config": placeGit,
		"mise.toml": placeEnvironment, ".config/mise.toml": placeEnvironment, ".config/mise/config.toml": placeEnvironment, ".mise/config.toml": placeEnvironment,
		"mise/config.toml": placeEnvironment, ".mise.local.toml": placeEnvironment, "mise.ci.toml": placeEnvironment, ".bashrc": placeEnvironment, ".zshenv": placeEnvironment,
		".pnpmfile.mjs": placePackages, "lefthook-local.yml": placeHook, ".lefthook-local.json": placeHook, ".config/lefthook.jsonc": placeHook, ".lefthook/pre-commit/a.sh": placeHook,
		"prek.toml": placeHook, ".overcommit.yml": placeHook, ".huskyrc.json": placeHook, ".helix/languages.toml": placeEditor, ".theia/tasks.json": placeEditor,
		".windsurf/rules/a.md": placeAgent, ".opencode/plugin/a.ts": placeAgent, "opencode.jsonc": placeAgent, "crush.json": placeAgent, ".crush/skills/a/b": placeInstructions,
		".github/agents/a.md": placeInstructions, ".github/prompts/a.prompt.md": placeInstructions, ".github/chatmodes/a.md": placeInstructions, ".github/skills/a/b.md": placeInstructions,
		".GitHub/Hooks/a.json": placeAgent, ".github/copilot/settings.json": placeAgent, "QWEN.md": placeInstructions, "CRUSH.md": placeInstructions, "WARP.md": placeInstructions,
		".goosehints": placeInstructions, ".rules": placeInstructions, "replit.md": placeInstructions, ".qwen/settings.json": placeAgent, ".kilocode/rules/a.md": placeAgent,
		".amazonq/rules/a.md": placeAgent, ".trae/rules/a.md": placeAgent, ".augment/rules/a.md": placeAgent, ".qoder/rules/a.md": placeAgent, ".aider.conf.yml": placeAgent,

		// Forms that file systems fold.
		".env\u200crc": placeEnvironment, "\ufeff.vscode/tasks.json": placeEditor, ".c\u202eursor/x": placeAgent, ".clau\u206fde/x": placeAgent, ".cla\U000e0001ude": placeAgent,
		".v\u017fcode/x": placeEditor, ".h\u200dus\u212ay/x": placeHook, ".gitcon\ufb01g": placeGit, "\uff21GENTS.md": placeInstructions, "s\u212aill.md": placeInstructions,
		".envrc.": placeEnvironment, ".envrc . ": placeEnvironment, ".vscode./tasks.json": placeEditor, ".vscode::$INDEX_ALLOCATION/tasks.json": placeEditor, "AGENTS.md:x": placeInstructions,
		"ENVRC~1": placeEnvironment, "vscode~2/tasks.json": placeEditor, "DEVCON~4/x": placeEditor, "MCP~1.JSO": placeAgent, "copilo~1.md": placeInstructions, "GIT~1/config": placeGit,

		// Only named.
		".env": "", ".npmrc": "", ".yarnrc.yml": "",

		"rules.json": "", "hooks.json": "", "agents~1.txt": "", "vscode~5": "", "vscode~1x": "", ".envrcs": "", "... .": "",
		"": "", "a.txt": "", ".gitignore": "", ".gitattributes": "", ".github/workflows/ci.yaml": "", "src/hooks/use.ts": "", "Makefile": "", "package.json": "",
		"agent.go": "", "contract.md": "", "agents.mdx": "", "git/config": "", "my.git/config": "", "docs/agent/x.yaml": "",
	} {
		if got := Guarded(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestPlacesThatAreOnlyNamed(t *testing.T) {
	for path, want := range map[string]Place{
		".env": {What: placeVariables, Named: true}, "sub/.ENV": {What: placeVariables, Named: true}, ".npmrc": {What: placePackages, Named: true},
		".yarnrc.yml": {What: placePackages, Named: true}, ".github/workflows/ci.yaml": {What: placeWorkflow, Named: true}, ".GitHub/Workflows/ci.yaml": {What: placeWorkflow, Named: true},

		".cargo/config.toml": {What: placePackages, Named: true}, "sub/.cargo/config": {What: placePackages, Named: true}, ".yarnrc": {What: placePackages, Named: true},
		".mvn/wrapper/maven-wrapper.properties": {What: placePackages, Named: true}, "bunfig.toml": {What: placePackages, Named: true}, ".env.local": {What: placeVariables, Named: true},
		".gitlab-ci.yml": {What: placeWorkflow, Named: true}, ".forgejo/workflows/a.yml": {What: placeWorkflow, Named: true}, "Jenkinsfile": {What: placeWorkflow, Named: true},
		".lintstagedrc.mjs": {What: placeHook, Named: true},

		".hg/store/00changelog.i": {}, ".jj/repo/store/a": {}, ".jj/working_copy/config.toml": {}, ".cargo/registry/a": {}, "config.toml": {}, "repo/config.toml": {},
		".env.example": {}, "mise.lock": {}, "mise/README.md": {}, "misery.toml": {}, ".bashrc/a": {}, ".crush/crush.db": {}, "docs/agents/a.md": {}, "prompts/a.md": {}, ".config/a": {},

		".env/lib/a.py": {}, ".env/.envrc": {What: placeEnvironment}, ".github/dependabot.yml": {}, "workflows/ci.yaml": {}, ".github/x/workflows/a": {}, "instructions/a": {},
	} {
		if got := PlaceOf(path); got != want {
			t.Errorf("%q: got %+v, want %+v", path, got, want)
		}
	}
	if !PlaceOf("AGENTS.md").Instructs() || !PlaceOf("agent.yaml").Instructs() || PlaceOf(".envrc").Instructs() || PlaceOf("a").Instructs() {
		t.Error("the wrong places instruct agents")
	}
}
