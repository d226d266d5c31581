package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// plant is a way to leave something that later runs outside of the sandbox, or instructs an agent.
type plant struct {
	// line is for a shell in a project, where ./evil shows that it ran and $evil is a text that must reach no
	// prompt.
	line string
	// names is the text that the result has to contain; empty if there is nothing outside of the folders that the command has for
	// itself.
	names string
	// read is a file that the command line reads if its user names it: it has to wait.
	read string
	// user is the next command of the user, apart from git status and a commit.
	user string
}

const plantedSkill = `printf -- "---\nname: evil\ndescription: $evil\n---\n$evil\n" > `

var plants = map[string]plant{
	"hook of git":             {line: "cp evil .git/hooks/post-commit", names: ".git/hooks/post-commit"},
	"setting of git":          {line: "git config core.fsmonitor ./evil", names: "core.fsmonitor in .git/config"},
	"hooks folder of git":     {line: "mkdir h; cp evil h/post-commit; git config core.hooksPath h", names: "core.hookspath in .git/config"},
	"alias of git":            {line: "git config alias.st '!./evil'", names: "alias.st in .git/config", user: "git st"},
	"husky":                   {line: "mkdir -p .husky; cp evil .husky/post-commit", names: ".husky/post-commit"},
	"lefthook":                {line: "echo 'post-commit: {commands: {x: {run: ./evil}}}' > lefthook.yml", names: "lefthook.yml"},
	"pre-commit":              {line: "echo 'repos: []' > .pre-commit-config.yaml", names: ".pre-commit-config.yaml"},
	"direnv":                  {line: "echo ./evil > .envrc", names: ".envrc"},
	"direnv with a PATH":      {line: "mkdir bin; cp evil bin/git; echo 'PATH_add bin' > sub/.envrc", names: "sub/.envrc"},
	"mise":                    {line: "printf '[hooks]\\nenter = \"./evil\"\\n' > .mise.toml", names: ".mise.toml"},
	"PATH of the user":        {line: "mkdir -p ~/bin ~/.local/bin; cp evil ~/bin/git; cp evil ~/.local/bin/git", user: "PATH=$HOME/bin:$HOME/.local/bin:$PATH; git status"},
	"profile of the shell":    {line: "for f in .profile .bashrc .bash_profile .zshrc; do echo $PWD/evil > ~/$f; done", user: "bash -lc true; bash -ic true </dev/null"},
	"cron":                    {line: "echo \"* * * * * $PWD/evil\" | crontab -; mkdir -p ~/.config/systemd/user ~/.config/autostart; cp evil ~/.config/autostart/x.desktop; echo x > ~/.config/systemd/user/x.timer; echo ./evil | at now", user: "ls ~/.config ~/.config/systemd && ./evil"},
	"global setting of git":   {line: "git config --global core.fsmonitor $PWD/evil; echo '[core]fsmonitor=./evil' > ~/.gitconfig"},
	"set-id program":          {line: "cp /bin/sh x; chmod 4755 x; chmod u+s x; install -m 6755 /bin/sh y", user: "find . -perm /6000 -type f | grep -q . && ./evil"},
	"task of VS Code":         {line: "mkdir -p .vscode; echo '{\"tasks\":[{\"runOptions\":{\"runOn\":\"folderOpen\"}}]}' > .vscode/tasks.json", names: ".vscode/tasks.json"},
	"setting of VS Code":      {line: "mkdir v; echo '{\"git.path\":\"./evil\"}' > v/settings.json; rm -rf .vscode; mv v .vscode", names: ".vscode/settings.json"},
	"dev container":           {line: "mkdir .devcontainer; echo '{\"initializeCommand\":\"./evil\"}' > .devcontainer/devcontainer.json", names: ".devcontainer/devcontainer.json"},
	"JetBrains":               {line: "mkdir -p .idea/runConfigurations; echo '<x/>' > .idea/runConfigurations/x.xml", names: ".idea/runConfigurations/x.xml"},
	"vim":                     {line: "echo ':!./evil' > .exrc; echo x > .nvim.lua", names: ".exrc, .nvim.lua"},
	"emacs":                   {line: "echo '((nil . ((eval . (shell-command \"./evil\")))))' > .dir-locals.el", names: ".dir-locals.el"},
	"instructions":            {line: "echo $evil >> AGENTS.md", names: "AGENTS.md"},
	"instructions, replaced":  {line: "echo $evil > x; mv x AGENTS.md", names: "AGENTS.md"},
	"instructions by a link":  {line: "echo $evil > docs/x.md; ln -sf docs/x.md AGENTS.md", names: "AGENTS.md"},
	"target of instructions":  {line: "echo $evil >> docs/rules.md", names: "CLAUDE.md"},
	"instructions of Copilot": {line: "mkdir -p .github; echo $evil > .github/copilot-instructions.md", names: ".github/copilot-instructions.md"},
	"instructions by a folder that is a link": {line: "mkdir g; echo $evil > g/copilot-instructions.md; rm -rf .github; ln -s g .github", names: ".github/copilot-instructions.md"},
	"instructions with other times":           {line: "touch -r AGENTS.md t; tr a-z b-za <AGENTS.md >x; echo $evil | head -c 5 | dd of=AGENTS.md conv=notrunc 2>/dev/null; echo $evil >> AGENTS.md; touch -r t AGENTS.md", names: "AGENTS.md"},
	"rules of editors":                        {line: "echo $evil > .cursorrules; echo $evil > .windsurfrules; mkdir .kiro; echo x > .kiro/x", names: ".cursorrules, .kiro/x, .windsurfrules"},
	"skill":                                   {line: "mkdir -p .agents/skills/evil; " + plantedSkill + ".agents/skills/evil/SKILL.md", names: ".agents/skills/evil/SKILL.md"},
	"skill by a link":                         {line: "mkdir -p x/y .claude/skills; " + plantedSkill + "x/y/SKILL.md; ln -s ../../x/y .claude/skills/evil", names: "x/y/SKILL.md"},
	"changed skill":                           {line: plantedSkill + ".claude/skills/kind/SKILL.md", names: ".claude/skills/kind/SKILL.md"},
	"agent file":                              {line: "echo 'instructions: x' > agent.yaml", names: "agent.yaml", read: "agent.yaml"},
	"agent file of a name":                    {line: "mkdir agents; echo x > agents/a.agent.yml", names: "agents/a.agent.yml", read: "agents/a.agent.yml"},
	"hooks and rules of agents":               {line: "echo x > hooks.yaml; echo x > rules.yaml; echo x > contract.yaml", names: "contract.yaml, hooks.yaml, rules.yaml", read: "hooks.yaml"},
	"pins of servers":                         {line: "echo {} > agent.yaml.mcp.lock", names: "agent.yaml.mcp.lock", read: "agent.yaml.mcp.lock"},
	"servers":                                 {line: "echo '{\"mcpServers\":{\"x\":{\"command\":\"./evil\"}}}' > .mcp.json", names: ".mcp.json", read: ".mcp.json"},
	"servers of others":                       {line: "mkdir -p .cursor; echo {} > .cursor/mcp.json; echo {} > opencode.json", names: ".cursor/mcp.json, opencode.json", read: "opencode.json"},
	"package managers":                        {line: "echo x > .npmrc; echo x > .yarnrc.yml; echo x > .pnpmfile.cjs; echo A=9 > .env", names: ".env, .npmrc, .pnpmfile.cjs, .yarnrc.yml"},
	"workflow":                                {line: "mkdir -p .github/workflows; echo x > .github/workflows/x.yml", names: ".github/workflows/x.yml"},
}

// TestWhatCallsPlantIsNamedAndNotRead: each way at one level. Nothing of it runs when the user works with git
// next, nothing is in what a next run is shown, and the command line does not read it unasked.
func TestWhatCallsPlantIsNamedAndNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("plants in every way")
	}
	setPlants(t, false)
}

func TestSystemWhatCallsPlantAtEachLevel(t *testing.T) { setPlants(t, true) }

func setPlants(t *testing.T, everywhere bool) {
	gitUser(t)
	h := newHost(t, Config{})
	all, number := h.levels(), 0
	for name, p := range plants {
		levels := all
		if number++; !everywhere {
			levels = all[number%len(all):][:1]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, level := range levels {
				h := &host{Server: h.Server, t: t, dir: filepath.Join(t.TempDir(), "w")}
				h.mkdir(h.dir)
				h.project()
				trapped(t, h.dir, "git add .; git commit -qm project; mkdir -p .vscode")
				resp := h.confined(level, nil, agentsGit+"evil=PLANTED; "+p.line)
				result := resp.GetResult()
				if !strings.Contains(result, p.names) || p.names == "" && strings.Contains(result, "and kept") {
					t.Errorf("at %s the result does not name %q: %s", sandbox.Name(level), p.names, result)
				}
				_ = os.Remove(filepath.Join(h.dir, "ran"))
				if shell(t, h.dir, "git status; git add a.txt; git commit -q --allow-empty -m m; git log -1; "+p.user) {
					t.Errorf("at %s it runs", sandbox.Name(level))
				}
				if shown := prototext.Format(withoutPaths(h.describe())); strings.Contains(shown, "PLANTED") {
					t.Errorf("at %s it reaches a prompt: %s", sandbox.Name(level), shown)
				}
				if text := h.call("skill", map[string]any{"name": "kind"}).GetResult() + h.call("skill", map[string]any{"name": "evil"}).GetResult(); strings.Contains(text, "PLANTED") {
					t.Errorf("at %s it reaches a prompt: %s", sandbox.Name(level), text)
				}
				if p.read == "" {
					continue
				}
				path := filepath.Join(h.dir, p.read)
				if _, waits := trust.Open(h.config.Dir).Unaccepted(path, trust.Read(path).Digest); !waits {
					t.Errorf("at %s the command line reads %s unasked", sandbox.Name(level), p.read)
				}
			}
		})
	}
}

// withoutPaths returns an environment without what only lists names.
func withoutPaths(e *harnessv1.Environment) *harnessv1.Environment {
	e.Listing = ""
	return e
}
