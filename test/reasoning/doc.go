// Package reasoning tests what goes back to model providers over whole runs: the turn
// service with the real wires against strict servers, which refuse what the services
// refuse. The servers bind reasoning to what preceded it, so a request that returns too
// much, too little or something altered fails the test.
package reasoning
