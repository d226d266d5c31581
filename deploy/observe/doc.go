// Package observe contains the monitoring of a mesh: dashboard.json for Grafana and
// alerts.yaml for Prometheus. Its tests run a mesh, scrape it, and evaluate each
// query of the dashboard and each expression of the alerts with Prometheus's engine.
// They also test each alert with made-up series in which it has to fire.
package observe
