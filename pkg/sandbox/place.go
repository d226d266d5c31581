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

// OfGit reports whether git runs programs by it.
func (p Place) OfGit() bool { return p.What == placeGit }

// Instructs reports whether agents are instructed or set up by it.
func (p Place) Instructs() bool { return p.What == placeAgent || p.What == placeInstructions }

// placeNames are the names of files and folders, in lower case.
var placeNames = names(map[string]string{
	placeGit:         ".git .gitconfig",
	placeHook:        ".husky .githooks .git-hooks .lefthook .lefthook-local .overcommit .pre-commit-config.yaml .pre-commit-config.yml",
	placeEnvironment: ".envrc .mise .autoenv .autoenv.zsh .autoenv_leave.zsh",
	placePackages:    ".pnpmfile.cjs .pnpmfile.mjs",
	placeEditor: `.vscode .idea .zed .fleet .helix .theia .devcontainer .devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .lvimrc
		.dir-locals.el .dir-locals-2.el`,
	placeAgent: `.harness .claude .codex .cursor .gemini .agents .agent .kiro .junie .roo .continue .windsurf .opencode .qwen .cline .kilocode
		.amazonq .augment .trae .qoder .factory .openhands .goose .aiassistant .tabnine .copilot .devin .firebender .codebuddy .iflow
		.zencoder .rovodev .antigravity .grok .idx .mcp.json mcp.json opencode.json opencode.jsonc crush.json .crush.json firebender.json
		.aider.conf.yml .aider.conf.yaml .roomodes .kilocodemodes hooks.yaml hooks.yml rules.yaml rules.yml`,
	placeInstructions: `agents.md agents.override.md agents.local.md agent.md claude.md claude.local.md gemini.md qwen.md crush.md warp.md grok.md
		codebuddy.md iflow.md replit.md copilot-instructions.md skill.md .cursorrules .windsurfrules .clinerules .roorules .rules .goosehints
		.augment-guidelines`,
})

// placesWithin are the names of files and folders within others, by up to three names of their path.
var placesWithin = names(map[string]string{
	placeGit:          ".hg/hgrc .hg/hgrc-not-shared .sl/config .jj/repo/config.toml .jj/repo/config-id .jj/workspace-config.toml .jj/workspace-config-id .pijul/config",
	placeEnvironment:  ".config/mise mise/config.toml mise/config.local.toml mise/conf.d",
	placeAgent:        ".github/hooks .github/copilot .crush/crush.json .config/opencode .config/goose",
	placeInstructions: ".github/instructions .github/agents .github/prompts .github/chatmodes .github/skills .crush/skills .crush/commands .crush/agents",
	placeWorkflow:     ".github/workflows .github/actions .gitea/workflows .forgejo/workflows .circleci/config.yml .buildkite/pipeline.yml",
	placePackages: `.cargo/config.toml .cargo/config .bundle/config .mvn/jvm.config .mvn/maven.config 
		.mvn/extensions.xml .mvn/wrapper gradle/wrapper .yarn/plugins .yarn/releases`,
})

// foldersWithPlaces are the first and the second names of placesWithin that others follow.
var foldersWithPlaces = func() map[string]bool {
	folders := map[string]bool{}
	for name := range placesWithin {
		for _, folder := range strings.Split(path.Dir(name), "/") {
			folders[folder] = true
		}
	}
	return folders
}()

// guardedFiles are names of files alone: a folder with such a name is no place.
var guardedFiles = names(map[string]string{
	placeHook:        "prek.toml .overcommit.yml .huskyrc .huskyrc.json .huskyrc.js captainhook.json hk.pkl",
	placeEnvironment: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout",
})

// namedFiles are files that are only named. A folder with such a name, such as a virtual environment
// .env, is no place.
var namedFiles = names(map[string]string{
	placeVariables: ".env .env.local .env.development .env.production .env.test .env.development.local .env.production.local .env.test.local",
	placePackages:  ".npmrc .yarnrc .yarnrc.yml bunfig.toml .bazelrc",
	placeHook:      ".lintstagedrc .lintstagedrc.json .lintstagedrc.yaml .lintstagedrc.yml .lintstagedrc.js .lintstagedrc.mjs .lintstagedrc.cjs",
	placeWorkflow:  ".gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .woodpecker.yml .gitpod.yml .replit azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile",
})

// names returns what each of the names is, which blanks separate.
func names(of map[string]string) map[string]string {
	all := map[string]string{}
	for what, list := range of {
		for _, name := range strings.Fields(list) {
			all[name] = what
		}
	}
	return all
}

// placeStems are the beginnings of file names before .yaml and the like.
var placeStems = map[string]string{
	"agent": placeAgent, "contract": placeAgent,
	"lefthook": placeHook, ".lefthook": placeHook, "lefthook-local": placeHook, ".lefthook-local": placeHook,
}

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
	for i, part := range parts {
		name := foldName(part)
		parts[i] = name
		what := placeNames[name]
		if what == "" {
			what = shortNames[name]
		}
		if what != "" {
			return Place{What: what}
		}
		if i == 0 || !foldersWithPlaces[parts[i-1]] {
			continue
		}
		what = placesWithin[parts[i-1]+"/"+name]
		if what == "" && i > 1 {
			what = placesWithin[parts[i-2]+"/"+parts[i-1]+"/"+name]
		}
		if what != "" {
			return Place{What: what, Named: what == placeWorkflow || what == placePackages}
		}
	}
	return placeFile(parts[len(parts)-1])
}

// placeFile returns what a file is by its name, which is folded.
func placeFile(name string) Place {
	if what := namedFiles[name]; what != "" {
		return Place{What: what, Named: true}
	}
	if what := guardedFiles[name]; what != "" {
		return Place{What: what}
	}
	extension := path.Ext(name)
	if strings.HasSuffix(name, ".mcp.lock") { // the pins of an agent file
		return Place{What: placeAgent}
	}
	switch extension {
	case ".code-workspace":
		return Place{What: placeEditor}
	case ".yaml", ".yml", ".json", ".jsonc", ".toml":
	default:
		return Place{}
	}
	stem := strings.TrimSuffix(name, extension)
	if first, _, _ := strings.Cut(strings.TrimPrefix(stem, "."), "."); first == "mise" && extension == ".toml" { // mise.toml, .mise.ci.toml
		return Place{What: placeEnvironment}
	}
	if what := placeStems[stem]; what != "" {
		return Place{What: what}
	}
	switch path.Ext(stem) { // reviewer.agent.yaml
	case ".agent", ".contract":
		return Place{What: placeAgent}
	}
	return Place{}
}
