package interrupt

import (
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Pokes passes hints to read an inbox on to the tasks of their runs. The zero Pokes has
// no tasks. It is safe for concurrent use.
type Pokes struct {
	mu      sync.Mutex
	pending map[runlog.Run]chan struct{} // has a token when the inbox is to be read
}

// Poke makes the task of run read its inbox. A poke is a hint and may be lost.
func (p *Pokes) Poke(run runlog.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ch := p.pending[run]; ch != nil {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Enter returns the pokes of run until leave is called. Of several tasks of a run the
// last one receives them: the others have lost their steps.
func (p *Pokes) Enter(run runlog.Run) (pokes <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = map[runlog.Run]chan struct{}{}
	}
	p.pending[run] = ch
	return ch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pending[run] == ch {
			delete(p.pending, run)
		}
	}
}
