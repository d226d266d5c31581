// Package meshtest runs a deployed mesh for tests and benchmarks: nats-server
// processes, alone or as a cluster, and one process per role. It kills, stops and
// continues them, arms their failpoints, and restarts them as a supervisor would.
//
//	bin := meshtest.Build(...)                       // once per test binary
//	m := meshtest.Start(t, meshtest.Config{...})     // NATS, provisioned, all roles
//	m.Start("turn", meshtest.Arm("turn.claimed=kill"))
//	...
//	entries := m.Entries(run)                        // the whole log
//	text := meshtest.Canonical(entries)              // without times and attempts
//
// Everything runs on loopback and ends with the test. If the test fails, the stderr of
// all processes is logged.
package meshtest
