// Package knocktest runs the program knock, which tries each method of a harness at each of
// its doors, as callers that must not get in: commands of runs, and other users of the machine.
package knocktest
