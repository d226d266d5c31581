package policy

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPrefixesOfKnownProgramsOnly: a program that runs another one for its arguments, or one that
// is not known, is allowed as it was called and no other way.
func TestPrefixesOfKnownProgramsOnly(t *testing.T) {
	for _, line := range []string{
		"tar xf a.tar", "mksh build", "ash build", "csh build", "rbash build", "vim a", "ex a", "expect script", "/lib64/ld-linux-x86-64.so.2 ./a",
		"ld-linux-x86-64.so.2 a", "git submodule foreach ls", "git bisect run ls", "git rebase main", "git difftool main", "git grep -O x",
		"git fetch origin", "git clone x", "git push", "git config a", "git pull", "git archive main", "git merge main", "git notes add",
		"git worktree add x", "git -C x status", "git --exec-path=x status", "git diff --output=x", "git log --output x", "./git status", "/tmp/go test",
		"go run x", "go tool x", "go generate", "go env -w A=b", "go install x", "go test -exec x", "go test --exec=x ./...", "go build -toolexec=x",
		"go vet -vettool x", "go build '-ldflags=-extld=x'", "go test -C x", "npx x", "npm install x", "npm exec x", "npm run build --script-shell=x",
		"npm --prefix x test", "yarn x", "pnpm dlx x", "bun x", "deno run x", "uv run x", "poetry run x", "cargo run", "cargo test --config x",
		"cargo install x", "make check SHELL=x", "make check install", "make check --eval=x", "make -f x", "just x", "python3 x", "python3 -m x",
		"python3 -c x.py", "node inspect", "node -e x.js", "perl x", "find -exec x", "sort -o x", "sort --compress-program=x", "rg --pre x", "fd -x x",
		"less x", "man x", "awk x", "sed -n x", "cp a b", "mv a b", "touch x", "uniq a b", "tree -o x", "printf -v PATH x", "read PATH", "test -v x",
		"mapfile -C x", "ssh -o ProxyCommand=x", "rsync -e x a b", "zip a b", "gdb x", "docker run x", "systemctl start x", "unknown x",
	} {
		for _, r := range Propose(hosted(runs), encode(map[string]any{"command": line}), "/work") {
			if r.GetPrefix() != "" {
				t.Errorf("%q: the prefix %q is proposed", line, r.GetPrefix())
			}
			if Granted([]*harnessv1.ToolRule{r}, runs, encode(map[string]any{"command": line + " more"}), "") {
				t.Errorf("%q: %v allows more than it", line, r)
			}
		}
	}
	for name, p := range known { // each is proposed for some call
		command := []word{{text: name}, {text: "x"}, {text: "y"}}
		for sub := range p.does {
			command[1].text = sub
		}
		for _, suffix := range p.suffixes {
			command[1].text += suffix
		}
		if prefixWords(command) == 0 {
			t.Errorf("no call of %s has a prefix", name)
		}
	}
}

// TestArgumentsAfterAPrefix: an approved prefix of a known program does not allow arguments
// that make it run something else. Fewer words are those of a person, and allow all that follows.
func TestArgumentsAfterAPrefix(t *testing.T) {
	for _, c := range []struct {
		prefix, line string
		want         bool
	}{
		{"go test", "go test -run X -v ./pkg/*", true},
		{"go test", "go test -exec x", false},
		{"go test", "go test ./... --toolexec=x", false},
		{"go test", "go test *", false}, // a file may be named -exec=x
		{"go test -exec x", "go test -exec x ./...", true},
		{"go", "go test -exec x", true},
		{"git diff", "git diff --stat main", true},
		{"git diff", "git diff --outpu=x", false},
		{"npm run build", "npm run build -- --script-shell=x", true},
		{"npm run build", "npm run build --script-shell=x", false},
		{"make check", "make check -j8 -k", true},
		{"make check", "make check CC=x", false},
		{"make check", "make check install", false},
		{"make", "make install CC=x", true},
		{"cargo test", "cargo test -- --nocapture", true},
		{"cargo test", "cargo test --config x", false},
		{"tail", "tail -n 3 a*", true},
		{"tar", "tar xf a", true},
	} {
		if got := Granted(withPrefixes(c.prefix), runs, encode(map[string]any{"command": c.line}), ""); got != c.want {
			t.Errorf("%q for %q: %v", c.prefix, c.line, got)
		}
	}
}

// TestExactCommands are for this line, or this command of a plain line, and no other.
func TestExactCommands(t *testing.T) {
	for _, c := range []struct {
		exact, line string
		want        bool
	}{
		{"rm -rf build", "rm -rf build", true},
		{"rm -rf build", "rm  -rf 'build'", true},
		{"rm -rf build", "rm -rf build && rm -rf build 2>&1", true},
		{"rm -rf build", "rm -rf build x", false},
		{"rm -rf build", "rm -rf", false},
		{"rm -rf build", "rm -rf build; ls", false},
		{"rm -rf build", "rm -rf build > x", false},
		{"go test $(x)", "go test $(x)", true},
		{"go test $(x)", "go test $(x) ", false},
		{"go test $(x)", "go test", false},
		{"rm *.o", "rm *.o", true},
		{"rm *.o", "rm '*.o'", false},
		{"rm '*.o'", "rm *.o", false},
		{"a && b", "a && b", true},
		{"a && b", "a", false},
	} {
		rules := []*harnessv1.ToolRule{{Name: "run_command", Policy: allow, Command: c.exact}}
		if got := Granted(rules, runs, encode(map[string]any{"command": c.line}), ""); got != c.want {
			t.Errorf("%q for %q: %v", c.exact, c.line, got)
		}
	}
	if _, err := Compile([]*harnessv1.ToolRule{{Name: "run_command", Policy: allow, Command: "x"}}); err == nil {
		t.Error("a rule of a policy has a command")
	}
}
