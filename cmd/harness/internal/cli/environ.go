package cli

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/show"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// leadingFlag matches the flag at the start of a message.
var leadingFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--([a-z0-9-]+)`) })

// whence adds the variable to a message about a flag that was set in the environment
// only.
func whence(a *console.Console, text string) string {
	match := leadingFlag().FindStringSubmatch(text)
	if match == nil || !a.Inherited[match[1]] || a.Given[match[1]] {
		return text
	}
	return "environment " + console.EnvName(match[1]) + ": " + text
}

// prefix is the prefix of all variables that are flags.
const prefix = "HARNESS_"

// warnUnknown warns about unknown HARNESS_ variables, which are probably misspelt.
func warnUnknown(a *console.Console, model *kong.Application) {
	known := append([]string{failpoint.Variable, show.EnvTraceURL}, quality.Variables()...)
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			known = append(known, console.EnvName(f.Name))
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(model.Node)
	slices.Sort(known)
	known = slices.Compact(known)
	for _, pair := range a.Environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(known, name) || serviceLink().MatchString(name) {
			continue
		}
		if near := nearest(name, known); near != "" {
			a.Report("WARNING: environment %s: unknown variable; did you mean %s?", name, near)
		} else {
			a.Report("WARNING: environment %s: unknown variable, ignored", name)
		}
	}
}

// serviceLink matches a variable that Kubernetes sets in each container for a service
// whose name begins with harness.
var serviceLink = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
})

// nearest returns the known variable whose name is nearest, empty if none is.
func nearest(name string, known []string) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = strings.TrimPrefix(k, prefix)
	}
	near := fault.Nearest(strings.TrimPrefix(name, prefix), names)
	if near == "" {
		return ""
	}
	return prefix + near
}
