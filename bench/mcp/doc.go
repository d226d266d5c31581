// Package mcp measures the overhead of the harness for tools from outside.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench/mcp  # what CI runs
//	go test -run '^$' -bench . -benchtime 20x ./bench/mcp
//
// Call compares a call through a tool host with the same call by the bare client: that of the
// MCP SDK, over stdio and streamable HTTP, and that of gRPC for a tool service. The call through
// the host is a request over gRPC, an entry of its ledger, a check of the arguments and of the
// definition, and the call of the server. The tool returns a line and does nothing else, so all
// of the difference is visible. Its server is a process, the same one for both sides over HTTP
// and gRPC, and the same program over stdio. With sync=always the mark of a call
// and its result are flushed to the disk. host/floor compares the call through the host with the
// sum of what it needs at least, measured in turns with it: the bare call, a request over gRPC that
// does nothing, and two commits of an entry to a database like that of the ledger.
//
// Interrupt compares the interrupt of a run whose call of a server hangs with that of a run
// whose command hangs, from InterruptRun to run.interrupted. Cancelled is a server that ends the call
// when it is cancelled and answers it: then its process is killed. Ignored is one that reads what it
// is sent, and neither answers the call nor ends: it may be ending the call, so it has the whole 250
// ms. Deaf is one that reads nothing any more: it has 100 ms to answer a ping, because a server that
// works on a busy machine must not be taken for one that hangs.
//
// Start compares the start of 25 servers with 20 tools each through a tool host, from
// DescribeServers to its response, with that by the client of the SDK, which starts the same programs
// at the same time, without supervisor and sandbox. slowest is how long the first of them waits
// before it answers anything.
//
// The sides take turns, so that a busy machine slows both. It needs Linux.
package mcp
