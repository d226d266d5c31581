// Package reasoning measures what reasoning costs that goes back to its provider: a turn
// of a run whose 1,000 answers have 20 KB of reasoning each, compared with a turn of a
// run whose answers have the same bytes as text, in the same run of the benchmark.
//
// Both sides are the turn worker on a JetStream log with the Messages wire; the model is
// a server on loopback that reads the request and answers with a constant. The figure is
// the processor time of the whole process, the servers included.
package reasoning
