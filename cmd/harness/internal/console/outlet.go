package console

import (
	"io"
	"sync"
)

// Outlet is the destination of the program's log: above a live display while there is
// one.
type Outlet struct {
	mu sync.Mutex
	W  io.Writer
}

// Write writes to the current destination.
func (o *Outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.W.Write(p)
}

// Redirect changes the destination.
func (o *Outlet) Redirect(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.W = w
}
