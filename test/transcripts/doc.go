// Package transcripts tells the loop's stories: a script of what the model, the
// tools and the people do goes in, the run's log comes out. Nothing runs but
// the pure decisions, chained as the executors chain them.
//
// testdata/*.txt are the stories, to be read by eye. Rewrite them with
//
//	go test ./test/transcripts -update
package transcripts
