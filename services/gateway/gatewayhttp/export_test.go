package gatewayhttp

import "strings"

// Routes returns the operations of a handler as METHOD PATH, with the parameters of the
// path in braces.
func Routes() []string {
	var names []string
	for _, r := range routes {
		names = append(names, r.method+" "+strings.Replace(r.path, "{$}", "", 1))
	}
	return names
}
