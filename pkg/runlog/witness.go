package runlog

import "context"

// Witness tells workers that live from those that died. A process answers for the
// deliveries that it had as long as it lives, whatever became of them.
type Witness interface {
	// Testify answers the questions of other workers of an executor, until stop. had
	// reports whether this process had a delivery of the step at sequence; it is called on
	// other goroutines.
	Testify(executor string, had func(run Run, sequence, delivery uint64) bool) (stop func(), err error)
	// Lives reports whether a worker of an executor that had a delivery of the step at
	// sequence is alive and can be reached. Errors: ErrUnavailable, also if the bus was
	// away lately, so that workers that live may not be back yet.
	Lives(ctx context.Context, executor string, run Run, sequence, delivery uint64) (bool, error)
}
