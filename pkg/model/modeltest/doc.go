// Package modeltest is what model providers are tested against: a strict
// server that speaks the OpenAI chat-completion protocol and the Anthropic
// Messages protocol over loopback HTTP, and the suite that every Provider passes.
//
// The server refuses what the real services refuse: it answers 400 with the
// reason to a request whose shape, roles, pairing of calls and results, or
// tool schemas are wrong, or that carries fields which not every compatible
// server knows. In the Messages protocol it is stricter than the service in one
// thing: roles have to alternate, where the service merges messages of one role. It keeps the bytes of every request. Replies are scripted or
// computed; faults (a cut stream, silence, garbage, an error in mid-stream) are
// part of a reply, so that a test reads as a list of what happens.
//
// A request beyond the last scripted reply fails the test and is answered with
// 500. A hanging reply is released by Server.Release, by the client going away,
// or by the end of the test.
package modeltest
