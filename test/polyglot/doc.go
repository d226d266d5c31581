// Package polyglot drives one run from several languages, as a team would: it is
// started from Python, watched from TypeScript, interrupted with curl and resumed with
// the command line. It needs Python, npm and curl:
//
//	go test -tags polyglot ./test/polyglot
package polyglot
