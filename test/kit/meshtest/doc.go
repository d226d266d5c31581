// Package meshtest runs the mesh as it is deployed, for tests and benchmarks:
// nats-server processes, alone or as a cluster, and one process per role. It
// kills them, stops and continues them, arms failpoints in them, and starts them
// again as a supervisor would.
//
//	bin := meshtest.Build(...)                       // once per test binary
//	m := meshtest.Start(t, meshtest.Config{...})     // NATS, provisioned, all roles
//	m.Start("turn", meshtest.Arm("turn.claimed=kill"))
//	...
//	entries := m.Entries(run)                        // the whole log
//	text := meshtest.Canonical(entries)              // without times and attempts
//
// Everything runs on loopback and ends with the test. What a process says on
// stderr is shown when the test fails.
package meshtest
