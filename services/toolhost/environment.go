package toolhost

import (
	"net/url"
	"slices"
	"strings"
)

// secretWords mark the names of variables that hold credentials.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}

// CommandEnvironment is the environment that a command gets from the host's
// own: without anything that looks like a credential, without HARNESS_*, and
// set up for a program that nobody sits in front of. A name in pass gets
// through whatever it looks like.
func CommandEnvironment(environ, pass []string) []string {
	fixed := []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	var out []string
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || slices.ContainsFunc(fixed, func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
			continue
		}
		if slices.Contains(pass, name) || !secret(name, value) {
			out = append(out, pair)
		}
	}
	return append(out, fixed...)
}

func secret(name, value string) bool {
	upper := strings.ToUpper(name)
	if strings.HasPrefix(upper, "HARNESS_") {
		return true
	}
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) }) {
		return true
	}
	return strings.Contains(value, "://") && hasPassword(value)
}

// hasPassword says whether a URL carries user:password@.
func hasPassword(value string) bool {
	u, err := url.Parse(value)
	if err != nil {
		return strings.Contains(value, "@") // a URL that cannot be read is not given away
	}
	_, has := u.User.Password()
	return has
}
