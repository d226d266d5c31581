// Package observe holds what a mesh is watched with: dashboard.json for Grafana and
// alerts.yaml for Prometheus. Its tests run a mesh, scrape it, and ask Prometheus's
// engine each query of the dashboard and each expression of the alerts; and they
// bring about, in made-up series, what each alert is for.
package observe
