package mcptool

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// variable matches ${NAME} and ${NAME:-TEXT}.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)
})

// Expand replaces each ${NAME} by the value of a variable, and ${NAME:-TEXT} by TEXT where there
// is none. The error names the first variable without a value.
func Expand(text string, lookup func(name string) (string, bool)) (string, error) {
	var missing string
	expanded := variable().ReplaceAllStringFunc(text, func(found string) string {
		parts := variable().FindStringSubmatch(found)
		if value, ok := lookup(parts[1]); ok {
			return value
		}
		if parts[2] == "" && missing == "" {
			missing = parts[1]
		}
		return parts[3]
	})
	if missing != "" {
		return "", fmt.Errorf("the variable %s is not set: set it where harness runs, or write ${%s:-TEXT}", missing, missing)
	}
	return expanded, nil
}

// Variables returns the names of the variables that the settings of servers name.
func Variables(servers []*harnessv1.McpServer) []string {
	var names []string
	add := func(text string) { names = append(names, VariablesOf(text)...) }
	for _, s := range servers {
		add(s.GetUrl())
		add(s.GetOauth().GetClientId())
		add(s.GetOauth().GetClientSecret())
		for _, arg := range s.GetArgs() {
			add(arg)
		}
		for _, value := range s.GetEnv() {
			add(value)
		}
		for _, value := range s.GetHeaders() {
			add(value)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// VariablesOf returns the names of the variables that a text names, in order.
func VariablesOf(text string) []string {
	var names []string
	for _, parts := range variable().FindAllStringSubmatch(text, -1) {
		names = append(names, parts[1])
	}
	return names
}
