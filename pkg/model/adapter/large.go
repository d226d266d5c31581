package adapter

import "context"

// maxLarge bounds the answers above wire.LargeBytes that a process receives at the same
// time, so that many answers without an end need no more memory than a few. The longest
// answers of models are half of that size.
const maxLarge = 8

// large contains a token for each large answer that this process receives.
var large = make(chan struct{}, maxLarge)

// largeAnswer is the place of a response among the large answers, which it has once it is
// one.
type largeAnswer struct {
	ctx     context.Context //nolint:containedctx // of the one response
	pace    *pace
	entered bool
}

// enter waits for a place, unless the response has one. The service is not read meanwhile,
// which does not count as its silence.
func (l *largeAnswer) enter() error {
	if l.entered {
		return nil
	}
	l.pace.pause(true)
	defer l.pace.resume(true)
	select {
	case large <- struct{}{}:
		l.entered = true
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

// leave frees the place.
func (l *largeAnswer) leave() {
	if l.entered {
		<-large
	}
}
