// Package gym is where models fail on purpose. Each of its models fails as real ones
// do, and works twice on the same task: in a bare loop (model, tools, again, until it
// says that it is done) and in the harness. What came of the work is looked at from
// outside of both.
//
//	go test ./bench/gym -run TestGym                              # all of them, checked
//	go test ./bench/gym -run TestGym -table ../../docs/gym.md     # and the table written
//
// A failing model either recovers, because the harness tells it something specific, or
// ends with the right verdict; none ends accepted without having done the work. Beside
// them work healthy models whose ways look like failing: none of those may be stopped.
//
// Models are functions of the request, behind a server that speaks the protocol of a
// provider. docs/gym.md says how to add one.
package gym
