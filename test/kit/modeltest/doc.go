// Package modeltest is the test kit of model providers: a strict server that
// speaks OpenAI's chat completions and responses and the Anthropic Messages protocol
// over loopback HTTP, and the suite that every Provider passes.
//
// The server rejects the requests that real services reject: it answers 400 with the reason
// to a request whose shape, roles, pairing of calls and results, or tool schemas are
// wrong, or that has fields which not every compatible server knows. In the
// Messages protocol it is stricter than the service: roles must alternate, while the
// service merges messages of one role. It signs the thinking of its answers, and refuses
// a block that comes back changed, in another place, or after a changed conversation, as
// models since Claude Fable 5.1 do. In the chat protocol a Temper decides which reasoning
// has to come back, and it has to be unchanged. With a Window it counts each request
// exactly and refuses one that is too long. It records the bytes of every request.
// Replies are scripted or computed. Faults (a cut stream, silence, garbage, an error
// within the stream) are part of a reply, so that a test reads as a list of events.
//
// A request beyond the last scripted reply fails the test and gets status 500. A
// hanging reply ends with Server.Release, with the client's connection, or with the
// test.
package modeltest
