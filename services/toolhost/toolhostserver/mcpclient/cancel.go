package mcpclient

import (
	"context"
	"time"
)

// awaitEnd waits until a server has ended a call that was cancelled: until it has answered the call
// or is gone, at most for the time patience. A server that does not answer a ping in the time
// reading does not read the cancellation either, and gets no more time. Any answer to the ping
// counts, also that it is unknown.
func (c *connection) awaitEnd(way *delivery, patience, reading time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		_ = c.client.Ping(ctx, nil)
	}()
	deaf := time.NewTimer(reading)
	defer deaf.Stop()
	for {
		select {
		case <-pinged:
			deaf.Stop()
			pinged = nil
		case <-way.over():
			return
		case <-c.gone:
			return
		case <-deaf.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
