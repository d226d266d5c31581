package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// MaxRules bounds the rules of one approval.
const MaxRules = 8

// Granted reports whether rules that approvals have stored fit a call: for a command each of
// its simple commands, otherwise its path, which may be absolute in the workspace.
func Granted(rules []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, arguments, workspace string) bool {
	call := &policyCall{spec: spec, arguments: arguments}
	var prefixes []prefix
	for _, given := range rules {
		rule, err := compileRule(given)
		if err == nil && rule.host != nil && visits(spec) { // what one web tool may read, the other may
			if site, ok := call.site(); ok && webtool.Visits(rule.name) && site.In([]sandbox.Host{*rule.host}) {
				return true
			}
		}
		if err != nil || rule.name != spec.GetName() {
			continue
		}
		if rule.prefix != nil {
			prefixes = append(prefixes, rule.prefix)
		}
		if rule.path != nil && rule.path.fits(inWorkspace(call, workspace), false) {
			return true
		}
	}
	line, ok := call.command()
	if !ok || len(prefixes) == 0 {
		return false
	}
	commands, plain := simpleCommands(line)
	return plain && !slices.ContainsFunc(commands, func(c []word) bool {
		return !slices.ContainsFunc(prefixes, func(p prefix) bool { return p.fitsCommand(c) })
	})
}

// visits reports whether a tool is one of the web tools whose calls name a url.
func visits(spec *harnessv1.ToolSpec) bool {
	return webtool.Visits(spec.GetName()) && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
}

// inWorkspace returns the path of a call relative to the workspace; unchanged if it is not in
// it, and empty if the call has none.
func inWorkspace(call *policyCall, workspace string) string {
	file, _ := call.parse()["path"].(string)
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(workspace, "/")+"/"); ok && workspace != "" {
		return strings.TrimLeft(rest, "/")
	}
	return file
}

// CheckGrant checks the rules of an approval for the rest of the run: each names the tool of
// the call and has a prefix, a path or a host, and with those that are stored they fit the call. The
// error is a *fault.FieldError with a place in rules.
func CheckGrant(rules, stored []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, arguments, workspace string) error {
	if len(rules) > MaxRules {
		return fault.Invalid("rules", "%d rules exceed the limit of %d", len(rules), MaxRules)
	}
	for i, given := range rules {
		at := fmt.Sprintf("rules[%d]", i)
		rule, err := compileRule(given)
		switch {
		case err != nil:
			return fault.In(at, err)
		case rule.name != spec.GetName():
			return fault.Invalid(at+".name", "must be the tool of the call, %s", spec.GetName())
		case rule.policy == harnessv1.ToolDecision_TOOL_DECISION_ASK, rule.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY:
			return fault.Invalid(at+".policy", "must be ALLOW")
		case rule.when != nil, rule.pattern != nil:
			return fault.Invalid(at, "must have no pattern and no when")
		case rule.host != nil && !visits(spec):
			return fault.Invalid(at+".host", "%s reaches no host that it names", spec.GetName())
		case rule.prefix == nil && rule.path == nil && rule.host == nil:
			return fault.Invalid(at, "must have a prefix, a path or a host: without rules the approval is for all calls of the tool")
		case rule.prefix != nil && !spec.GetAnnotations().GetExecutes():
			return fault.Invalid(at+".prefix", "%s runs no commands", spec.GetName())
		case rule.path != nil && spec.GetAnnotations().GetExecutes():
			return fault.Invalid(at+".path", "%s runs commands: give the prefix of its commands", spec.GetName())
		case rule.path != nil && sandbox.Guarded(inWorkspace(&policyCall{spec: spec, arguments: arguments}, workspace)) != "":
			return fault.Invalid(at+".path", "each call that writes this file is approved alone")
		}
	}
	if !Granted(slices.Concat(stored, rules), spec, arguments, workspace) {
		if visits(spec) {
			return fault.Invalid("rules", "they do not fit the call: a host must be that of its url")
		}
		return fault.Invalid("rules", "they do not fit the call: each simple command must begin with a prefix, and a path must match; "+
			"no prefix fits a command with substitutions, variables, redirections to files, assignments or groups")
	}
	return nil
}

// Propose returns the rules that an approval of a call for the rest of the run stores unless
// the person gives others: for a command the first words of its simple commands, for a file
// its folder, for an address its host. There are none if no rule fits the call, or if a rule would allow much more than
// the call.
func Propose(spec *harnessv1.ToolSpec, arguments, workspace string) []*harnessv1.ToolRule {
	call := &policyCall{spec: spec, arguments: arguments}
	if spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
		return nil
	}
	rule := func() *harnessv1.ToolRule {
		return &harnessv1.ToolRule{Name: spec.GetName(), Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}
	}
	var rules []*harnessv1.ToolRule
	if spec.GetAnnotations().GetExecutes() {
		line, _ := call.command()
		commands, _ := simpleCommands(line)
		for _, c := range commands {
			text := proposePrefix(c)
			if text == "" {
				return nil
			}
			if !slices.ContainsFunc(rules, func(r *harnessv1.ToolRule) bool { return r.GetPrefix() == text }) {
				r := rule()
				r.Prefix = text
				rules = append(rules, r)
			}
		}
	} else if site, ok := call.site(); ok && visits(spec) {
		r := rule()
		r.Host = site.String()
		rules = append(rules, r)
	} else if file := inWorkspace(call, workspace); file != "" {
		r := rule()
		r.Path = literalGlob(path.Clean(file))
		if dir := path.Dir(path.Clean(file)); dir != "." {
			r.Path = literalGlob(dir) + "/**"
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 || CheckGrant(rules, nil, spec, arguments, workspace) != nil {
		return nil
	}
	return rules
}

// literalGlob returns the pattern that matches a path only.
func literalGlob(file string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(file)
}

// Programs whose first words alone allow much more than a call.
var (
	// broad have no proposal: what they do is in their arguments.
	broad = setOf("rm rmdir dd shred mkfs mount umount chmod chown chgrp ln kill killall pkill find awk gawk sed perl tee truncate " +
		"curl wget nc ncat socat scp sftp rsync ftp crontab at systemctl service reboot shutdown iptables docker podman kubectl " +
		"terraform ansible aws gcloud az gh psql mysql sqlite3 gdb")
	// interpreters run the file that they name first.
	interpreters = setOf("python python3 node deno ruby php lua Rscript java")
	// runsScript have subcommands that run the script named by the next word.
	runsScript = setOf("npm pnpm yarn bun npx uv poetry pipenv cargo-run make just task rake")
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}

// proposePrefix returns the prefix for calls like a simple command; empty if it has none.
func proposePrefix(command []word) string {
	name := command[0].text
	n := 1
	subcommand := len(command) > 1 && isSubcommand(command[1])
	switch {
	case broad[path.Base(name)]:
		return ""
	case interpreters[path.Base(name)]:
		if len(command) < 2 || command[1].expands || strings.HasPrefix(command[1].text, "-") {
			return ""
		}
		n = 2
	case runsScript[name]:
		for n < 3 && n < len(command) && isSubcommand(command[n]) {
			n++
		}
		if n == 1 && len(command) > 1 {
			return ""
		}
	case name == "git":
		if !subcommand || command[1].text == "push" || command[1].text == "config" {
			return ""
		}
		n = 2
	case subcommand:
		n = 2
	}
	var words []string
	for _, w := range command[:n] {
		words = append(words, quote(w.text))
	}
	return strings.Join(words, " ")
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

// quote writes a word for a shell.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
