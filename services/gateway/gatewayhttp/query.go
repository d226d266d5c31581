package gatewayhttp

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// query is the query of a request. Readers read values and check err at the end: it is
// the first mistake.
type query struct {
	values url.Values
	err    error
}

// namespaceParam is a parameter of every route.
const namespaceParam = "namespace"

// queryOf reads the query of a request, which may have namespace and the named
// parameters, each once.
func queryOf(r *http.Request, names ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.refuse("query", "%v: names and values must be percent-encoded", err)
		return q
	}
	names = append(names, namespaceParam)
	for _, name := range sorted(values) {
		switch {
		case !slices.Contains(names, name):
			slices.Sort(names)
			q.refuse(clip(name), "unknown parameter; expected one of %s", strings.Join(names, ", "))
		case len(values[name]) > 1:
			q.refuse(name, "duplicate parameter")
		}
	}
	return q
}

func sorted(values url.Values) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (q *query) refuse(name, format string, args ...any) {
	if q.err == nil {
		q.err = fault.Invalid(name, format, args...)
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) namespace() string { return q.text(namespaceParam) }

func (q *query) flag(name string) bool {
	switch q.text(name) {
	case "":
		if q.values.Has(name) {
			q.refuse(name, "missing value: expected true or false")
		}
	case "true":
		return true
	case "false":
	default:
		q.refuse(name, "%q: expected true or false", clip(q.text(name)))
	}
	return false
}

// choice reads a flag that may be unset.
func (q *query) choice(name string) *bool {
	if !q.values.Has(name) {
		return nil
	}
	chosen := q.flag(name)
	return &chosen
}

func (q *query) number(name string, bits int) uint64 {
	if q.text(name) == "" {
		return 0
	}
	n, err := strconv.ParseUint(q.text(name), 10, bits)
	if err != nil {
		q.refuse(name, "%q: expected a whole number from 0", clip(q.text(name)))
	}
	return n
}

// statuses reads a list such as running,parked.
func (q *query) statuses() []harnessv1.RunStatus {
	if q.text("status") == "" {
		return nil
	}
	var statuses []harnessv1.RunStatus
	for _, name := range strings.Split(q.text("status"), ",") {
		n := harnessv1.RunStatus_value["RUN_STATUS_"+strings.ToUpper(strings.TrimSpace(name))]
		if n == 0 {
			q.refuse("status", "%q: expected running, parked, done, stalled, failed or cancelled, separated by commas", clip(name))
		}
		statuses = append(statuses, harnessv1.RunStatus(n))
	}
	return statuses
}

func (q *query) until() harnessv1.WatchUntil {
	if q.text("until") == "" {
		return harnessv1.WatchUntil_WATCH_UNTIL_END
	}
	n := harnessv1.WatchUntil_value["WATCH_UNTIL_"+strings.ToUpper(q.text("until"))]
	if n == 0 {
		q.refuse("until", "%q: expected end, rest or now", clip(q.text("until")))
	}
	return harnessv1.WatchUntil(n)
}

// seedNames reports whether events are to have their seed names.
func (q *query) seedNames() bool {
	switch q.text("names") {
	case "", "mesh":
		return false
	case "seed":
		return true
	}
	q.refuse("names", "%q: expected mesh or seed", clip(q.text("names")))
	return false
}
