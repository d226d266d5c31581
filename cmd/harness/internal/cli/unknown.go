package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// otherWords are words of other programs for what a verb does.
var otherWords = map[string][]string{
	"ls": {"list"}, "ps": {"list"}, "runs": {"list"}, "status": {"show", "list"}, "info": {"show"}, "get": {"show"}, "describe": {"show"},
	"start": {"run"}, "exec": {"run"}, "ask": {"run"}, "chat": {"run"}, "new": {"run"}, "prompts": {"prompt"},
	"stop": {"interrupt", "cancel"}, "pause": {"interrupt"}, "kill": {"interrupt", "cancel"}, "abort": {"cancel"}, "end": {"cancel"},
	"continue": {"resume"}, "retry": {"resume"}, "restart": {"resume"}, "reply": {"answer", "send"}, "message": {"send"}, "say": {"send"},
	"allow": {"approve"}, "accept": {"approve"}, "yes": {"approve"}, "deny": {"approve"}, "reject": {"approve"},
	"rm": {"delete"}, "remove": {"delete"}, "logs": {"watch", "daemon"}, "log": {"watch", "show"}, "tail": {"watch"}, "follow": {"watch"}, "attach": {"watch"},
	"init": {"agent"}, "check": {"agent", "doctor"}, "config": {"agent", "doctor"}, "diagnose": {"doctor"}, "server": {"serve"}, "up": {"serve"},
}

// unknownVerb returns the error for a first argument that is no verb, with those that are near it; nil
// if it is one, or a flag.
func unknownVerb(model *kong.Application, args []string) error {
	if len(args) == 0 {
		return errors.New("expected a verb: harness run GOAL starts a run, harness help lists all verbs")
	}
	word := args[0]
	if strings.HasPrefix(word, "-") || childOf(model.Node, word) != nil {
		return nil
	}
	for _, child := range model.Children {
		if child.Name == word { // a hidden one
			return nil
		}
	}
	if strings.ContainsAny(strings.TrimSpace(word), " \n") {
		return fmt.Errorf("%q is no verb: to start a run with this goal: harness run %s", render.Short(word, 60), target.Quote(render.Short(word, 200)))
	}
	if near := nearVerbs(model, word); len(near) > 0 {
		return fmt.Errorf("unknown verb %q: did you mean harness %s? harness help lists all verbs", render.Short(word, 60), strings.Join(near, " or harness "))
	}
	return fmt.Errorf("unknown verb %q: harness run GOAL starts a run, harness help lists all verbs", render.Short(word, 60))
}

// nearVerbs returns the verbs that a word may stand for.
func nearVerbs(model *kong.Application, word string) []string {
	if verbs := otherWords[strings.ToLower(word)]; verbs != nil {
		return verbs
	}
	var names, begin []string
	for _, child := range model.Children {
		if child.Hidden {
			continue
		}
		names = append(names, child.Name)
		if len(word) >= 2 && strings.HasPrefix(child.Name, strings.ToLower(word)) {
			begin = append(begin, child.Name)
		}
	}
	if near := fault.Nearest(word, names); near != "" {
		return []string{near}
	}
	if len(begin) > 0 {
		return begin
	}
	for _, name := range names { // two letters that changed places
		if fault.EditDistance(word, name) <= 2 && len(name) >= 4 {
			return []string{name}
		}
	}
	return nil
}

// notANumber matches the message of the parser about a value that is no number.
var notANumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(--[a-z-]+): expected (?:a valid \d+ bit (u?)int but got|(u?)int value but got) ("[^"]*")`)
})

// parseError returns an error of the parser in words for users.
func parseError(err error) error {
	match := notANumber().FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	what := "a whole number"
	if match[2]+match[3] != "" {
		what += ", not below zero"
	}
	return fmt.Errorf("%s: %s: expected %s", match[1], match[4], what)
}
