package telemetry

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves what monitoring reads:
//
//	/metrics   the registry, as Prometheus text
//	/healthz   200 while the process answers
//	/readyz    200 if every role is ready, else 503 and a line for each that is not: ROLE: REASON;
//	           then a line for each warning: warning: ROLE: REASON
//
// reasons returns why roles are not ready, empty for those that are. warnings returns, by
// role, the parts that the mesh lacks although this process can work.
func (m *Metrics) Handler(registry *prometheus.Registry, reasons, warnings func() map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		waits := reasons()
		maps.DeleteFunc(waits, func(_, reason string) bool { return reason == "" })
		if len(waits) == 0 {
			fmt.Fprintln(w, "ok")
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		writeReasons(w, "", waits)
		writeReasons(w, "warning: ", warnings())
	})
	return m.HTTP(mux)
}

// writeReasons writes a line for each role.
func writeReasons(w http.ResponseWriter, prefix string, reasons map[string]string) {
	for _, role := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "%s%s: %s\n", prefix, role, reasons[role])
	}
}

// HTTP counts the requests to next, by the pattern with which a mux inside has served
// them. A nil m returns next.
func (m *Metrics) HTTP(next http.Handler) http.Handler {
	if m == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		method := r.Method
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
			method = "_OTHER" // a client can make up any
		}
		m.httpDuration.record(r.Context(), time.Since(began).Seconds(), method, route(r.Pattern), strconv.Itoa(seen.status))
	})
}

// route returns a pattern without its method; empty if nothing matched.
func route(pattern string) string {
	for i := range pattern {
		if pattern[i] == '/' {
			return pattern[i:]
		}
	}
	return ""
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

// WriteHeader records the first status.
func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, status >= http.StatusOK // another status follows a 1xx
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sets the status 200 if none was set.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

// Unwrap allows http.ResponseController to flush streams.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends the buffered bytes, for handlers that require http.Flusher.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }
