// Package gym is where models fail on purpose. Each of its models fails as real ones
// do, and works twice on the same task: in a bare loop (model, tools, again, until it
// claims to be done) and in the harness. The result of the work is checked from
// outside of both.
//
//	go test ./bench/gym -run TestSystemGym                              # all of them, checked
//	go test ./bench/gym -run TestSystemGym -table ../../docs/gym.md     # and the table written
//
// A failing model either recovers, because the harness tells it something specific, or
// ends with the right verdict; none ends accepted without having done the work. Next to
// them work healthy models whose ways look like failing: none of those may be stopped.
// In a small window, which compaction keeps from overflowing, the verdicts are the same.
//
// Models are functions of the requests so far, called by a server with the protocol of a
// provider. docs/gym.md explains how to add one.
package gym
