package toolhost

import (
	"net/url"
	"slices"
	"strings"
)

// secretWords are parts of the names of variables with credentials.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}

// CommandEnvironment returns the environment of commands, made from the host's own. It
// leaves out HARNESS_* and every variable that looks like a credential, unless its name is
// in pass, and turns off pagers and prompts.
func CommandEnvironment(environ, pass []string) []string {
	fixed := []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	var out []string
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || slices.ContainsFunc(fixed, func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
			continue
		}
		if slices.Contains(pass, name) || !isSecret(name, value) {
			out = append(out, pair)
		}
	}
	return append(out, fixed...)
}

// isSecret reports whether a variable looks like a credential.
func isSecret(name, value string) bool {
	upper := strings.ToUpper(name)
	if strings.HasPrefix(upper, "HARNESS_") {
		return true
	}
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) }) {
		return true
	}
	return strings.Contains(value, "://") && hasPassword(value)
}

// hasPassword reports whether a URL has the form user:password@host. A URL that cannot be
// parsed counts as one if it has an @.
func hasPassword(value string) bool {
	u, err := url.Parse(value)
	if err != nil {
		return strings.Contains(value, "@")
	}
	_, has := u.User.Password()
	return has
}
