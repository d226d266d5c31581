package runlog

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Witness tells workers that live from those that died, and has the last words of the latter.
// A process answers for the deliveries that it had as long as it lives, whatever became of
// them. Nothing of it is stored.
type Witness interface {
	// Testify answers the questions of other workers of an executor, and passes on the words
	// of all of them, until stop.
	Testify(executor string, t Testimony) (stop func(), err error)
	// PublishWord publishes whether a step of this worker waits. It does not wait, unless sent is
	// true: then the server has the word when PublishWord returns, unless that takes too long. A word
	// can be lost.
	PublishWord(executor string, run Run, word *harnessv1.StepWord, sent bool)
	// Lives reports whether a worker of an executor that had a delivery of the step at
	// sequence is alive and can be reached. If none is, last is the last word about the
	// delivery that other workers have heard; nil without one. Errors: ErrUnavailable, also if
	// the bus was away lately, so that workers that live may not be back yet.
	Lives(ctx context.Context, executor string, run Run, sequence, delivery uint64) (alive bool, last *harnessv1.StepWord, err error)
}

// Testimony has the deliveries of an executor that a worker knows. Its methods are called on
// other goroutines.
type Testimony interface {
	// Had reports whether this process had a delivery of the step at sequence.
	Had(run Run, sequence, delivery uint64) bool
	// Heard records a word, of another worker or of this one.
	Heard(run Run, word *harnessv1.StepWord)
	// LastWord returns the newest word about a delivery; nil if none was heard.
	LastWord(run Run, sequence, delivery uint64) *harnessv1.StepWord
}
