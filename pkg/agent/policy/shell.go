package policy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is one argument of a simple command, as the shell passes it to the program.
type word struct {
	text string
	// expands is true if the shell may replace the word: it has a pattern or a tilde.
	expands bool
}

// operators end a simple command; the first one that fits counts.
var operators = []string{"&&", "||", "|", ";", "\n"}

// quiet is a redirection that writes no file, with the text after it.
var quiet = regexp.MustCompile(`^([12]?>(?:&[12]|[ \t]*/dev/null))(?:[ \t\n;|]|&&|$)`)

// simpleCommands returns the words of the simple commands of a command line for sh -c, in
// order. plain is false if the line has anything but simple commands, joined by ;, a line
// break, &&, || or |, that a shell and this function read in the same way. Not plain are
// substitutions and expansions of variables, redirections other than to /dev/null or to
// another descriptor, assignments, groups, compound commands, comments, background commands,
// braces, and commands that run other commands or change the shell.
func simpleCommands(line string) (commands [][]word, plain bool) {
	if !utf8.ValidString(line) || strings.ContainsFunc(line, odd) {
		return nil, false
	}
	var command []word
	open := false // after an operator that another command has to follow
	for rest := line; ; {
		rest = strings.TrimLeft(rest, " \t")
		operator := operatorAt(rest)
		switch {
		case rest == "" || operator != "":
			switch {
			case len(command) > 0 && runsOthers(command[0]):
				return nil, false
			case len(command) > 0:
				commands = append(commands, command)
				command, open = nil, operator == "&&" || operator == "||" || operator == "|"
			case open && rest == "", operator != "" && operator != "\n":
				return nil, false
			}
			if rest == "" {
				return commands, len(commands) > 0 && !open
			}
			rest = rest[len(operator):]
			continue
		case len(command) > 0:
			if at := quiet.FindStringSubmatch(rest); at != nil {
				rest = rest[len(at[1]):]
				continue
			}
		}
		w, n := wordAt(rest)
		if n == 0 {
			return nil, false
		}
		command, rest = append(command, w), rest[n:]
	}
}

// odd reports whether a character may be read as another one than it seems.
func odd(r rune) bool {
	switch r {
	case ' ', '\t', '\n':
		return false
	}
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
}

// operatorAt returns the operator that a text begins with; empty if it begins with none.
func operatorAt(text string) string {
	for _, operator := range operators {
		if strings.HasPrefix(text, operator) {
			return operator
		}
	}
	return ""
}

// wordAt returns the word that a text begins with, and its length in bytes; 0 if it is not
// plain.
func wordAt(text string) (w word, length int) {
	var b strings.Builder
	i := 0
	for ; i < len(text) && !strings.ContainsRune(" \t\n;|", rune(text[i])); i++ {
		switch c := text[i]; c {
		case '&':
			if strings.HasPrefix(text[i:], "&&") {
				return word{text: b.String(), expands: w.expands}, i
			}
			return w, 0
		case '$', '`', '<', '>', '(', ')', '{', '}':
			return w, 0
		case '#':
			if i == 0 {
				return w, 0
			}
			b.WriteByte(c)
		case '*', '?', '[', ']', '~':
			w.expands = true
			b.WriteByte(c)
		case '\\':
			i++
			if i == len(text) || text[i] == '\n' {
				return w, 0
			}
			b.WriteByte(text[i])
		case '\'', '"':
			inner, n := quoted(text[i:])
			if n == 0 {
				return w, 0
			}
			b.WriteString(inner)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	w.text = b.String()
	return w, i
}

// quoted returns what a text that begins with a quote has up to the closing one, and the
// length with both; 0 if it has no end on its line or is expanded.
func quoted(text string) (inner string, length int) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == text[0]:
			return b.String(), i + 1
		case c == '\n':
			return "", 0
		case text[0] == '\'':
		case c == '$' || c == '`':
			return "", 0
		case c == '\\' && i+1 < len(text) && strings.ContainsRune("\"\\$`", rune(text[i+1])):
			i++
			c = text[i]
		}
		b.WriteByte(c)
	}
	return "", 0
}

// runners are the words that begin compound commands, and the programs that run other
// programs or change the shell: what follows them says more than they do.
var runners = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(`! [[ { } case coproc do done elif else esac fi for function if in select then time until while
		. source eval exec command builtin alias unalias export declare typeset local readonly set unset shopt enable hash trap
		bash busybox chroot chrt dash doas env fish flock ionice ksh nice nohup nsenter parallel pkexec runuser script setsid sh
		ssh stdbuf strace su sudo systemd-run taskset timeout unshare watch xargs zsh`) {
		set[name] = true
	}
	return set
}()

// runsOthers reports whether the first word of a simple command does not name the program that it runs.
func runsOthers(first word) bool {
	name := first.text[strings.LastIndexByte(first.text, '/')+1:]
	return first.expands || strings.Contains(first.text, "=") || name == "" || runners[name] || runners[first.text]
}
