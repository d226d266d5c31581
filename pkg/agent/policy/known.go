package policy

import (
	"path"
	"slices"
	"strings"
)

// program is a program of which prefixes are proposed: no argument after a prefix makes it run
// another program than those of its project, change the shell, or write, unless bars reports it.
type program struct {
	// does are the subcommands that a prefix has as its second word.
	does map[string]bool
	// runs are the subcommands whose next word, a script of the project, is the third of a prefix.
	runs map[string]bool
	// suffixes are those of a script that is the second word.
	suffixes []string
	// target: the second word is a name, such as a target of a makefile. alone: a prefix may be the name alone.
	target, alone bool
	// bars reports whether the words after a prefix make it do something else. nil: none do.
	bars func(words []word) bool
}

// known are the programs of which prefixes are proposed. Those that build and test run the code
// of the workspace, as their names say. Not here are, for what arguments make them do:
//   - shells, editors, pagers, and interpreters with a program as an argument: mksh, ash, csh,
//     rbash, vim, less, man, expect, awk, sed, perl;
//   - programs with an option for a command: tar, find, sort, rg, fd, rsync, ssh, ld.so, and of git
//     grep, bisect, rebase, submodule, difftool, fetch, pull, clone, archive, merge, config;
//   - builtins that set variables or expand text: printf, read, test, mapfile;
//   - what writes a file that it is given: cp, mv, tee, dd, touch, tree, xxd, uniq;
//   - what runs any package or module: npx, uv, poetry, pipenv, bun, go run, cargo run, pytest.
var known = func() map[string]program {
	all := map[string]program{
		"go":      {does: setOf("build list test vet"), bars: barsFlags(goFlags, 1)},
		"git":     {does: setOf("add blame commit describe diff log ls-files ls-tree merge-base rev-list rev-parse shortlog show status"), bars: barsFlags(gitFlags, 0)},
		"cargo":   {does: setOf("build check clippy test"), bars: barsFlags(cargoFlags, 0)},
		"npm":     {does: setOf("ci test"), runs: setOf("run"), bars: barsAllFlags},
		"pnpm":    {does: setOf("test"), runs: setOf("run"), bars: barsAllFlags},
		"yarn":    {does: setOf("test"), runs: setOf("run"), bars: barsAllFlags},
		"make":    {target: true, bars: barsMake},
		"cd":      {target: true, alone: true},
		"python":  {suffixes: []string{".py"}},
		"python3": {suffixes: []string{".py"}},
		"node":    {suffixes: []string{".js", ".mjs", ".cjs"}},
		"ruby":    {suffixes: []string{".rb"}},
		"php":     {suffixes: []string{".php"}},
	}
	for name := range setOf("basename cat cmp column comm cut df diff dirname du echo egrep expand false fgrep fmt fold grep head id join jq ls md5sum nl " +
		"nproc od paste pwd readlink realpath rev seq sha1sum sha256sum sha512sum stat tac tail tr true uname wc which whoami") {
		all[name] = program{alone: true}
	}
	return all
}()

var (
	// goFlags run programs, or have tools run them, and build another module or other files.
	goFlags = []string{"-exec", "-toolexec", "-vettool", "-ldflags", "-gcflags", "-gccgoflags", "-asmflags", "-compiler", "-C", "-modfile", "-overlay"}
	// gitFlags write to a file that they name. Options of git may be shortened.
	gitFlags = []string{"--ou"}
	// cargoFlags name programs that build and run, and build another package.
	cargoFlags = []string{"--config", "--manifest-path", "-Z", "-C"}
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}

// barsFlags bars words that begin with a flag, and words that may become one. doubled is 1 for
// programs whose flags also begin with two hyphens.
func barsFlags(flags []string, doubled int) func([]word) bool {
	return func(words []word) bool {
		return slices.ContainsFunc(words, func(w word) bool {
			return mayBeFlag(w) || slices.ContainsFunc(flags, func(flag string) bool {
				return strings.HasPrefix(w.text, flag) || doubled > 0 && strings.HasPrefix(w.text, "-"+flag)
			})
		})
	}
}

// barsAllFlags bars flags, but not those after --, which are for the script.
func barsAllFlags(words []word) bool {
	for _, w := range words {
		if w.text == "--" {
			return false
		}
		if mayBeFlag(w) || strings.HasPrefix(w.text, "-") {
			return true
		}
	}
	return false
}

// barsMake bars all but flags about how targets are made: variables, other makefiles and other
// targets change the files that are made.
func barsMake(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool {
		jobs, is := strings.CutPrefix(w.text, "-j")
		harmless := is && strings.Trim(jobs, "0123456789") == "" || w.text == "-k" || w.text == "-s" || w.text == "-B"
		return w.expands || !harmless
	})
}

// mayBeFlag reports whether the shell may make a word a flag: a file may be named like one.
func mayBeFlag(w word) bool { return w.expands && strings.ContainsRune("*?[-", rune(w.text[0])) }

// prefixWords returns how many words of a simple command a prefix for calls like it has; 0: none is proposed.
func prefixWords(command []word) int {
	is := known[command[0].text]
	at := func(n int) (w word) {
		if n < len(command) {
			w = command[n]
		}
		return w
	}
	second := at(1)
	switch named := isSubcommand(second); {
	case named && (is.target || is.does[second.text]):
		return 2
	case named && is.runs[second.text] && isSubcommand(at(2)):
		return 3
	case !second.expands && !strings.HasPrefix(second.text, "-") && slices.Contains(is.suffixes, path.Ext(second.text)):
		return 2
	case is.alone:
		return 1
	}
	return 0
}

// proposePrefix returns the words of the prefix that is proposed for a simple command; nil if there is none.
func proposePrefix(command []word) []word {
	n := prefixWords(command)
	if n == 0 || barred(command, n) {
		return nil
	}
	return command[:n]
}

// covers reports whether the words are the first of a simple command, and no word after them makes
// a known program do something else. Words that are fewer than those of a proposed prefix are a
// person's own: they allow all that follows.
func (p prefix) covers(command []word) bool {
	if !p.fitsCommand(command) {
		return false
	}
	n := prefixWords(command)
	return n == 0 || len(p) < n || !barred(command, len(p))
}

// barred reports whether the words of a command from the n-th on make it do something that its first words do not name.
func barred(command []word, n int) bool {
	bars := known[command[0].text].bars
	return bars != nil && bars(command[n:])
}

// isSubcommand reports whether a word may be the name of what a program does.
func isSubcommand(w word) bool {
	for i, r := range w.text {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789:_-", r)) {
			return false
		}
	}
	return w.text != "" && !w.expands
}

// written returns words as a shell reads them.
func written(words []word) string {
	texts := make([]string, 0, len(words))
	for _, w := range words {
		texts = append(texts, quote(w.text))
	}
	return strings.Join(texts, " ")
}

// quote writes a word for a shell.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
