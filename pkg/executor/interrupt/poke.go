package interrupt

import (
	"sync"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Pokes passes hints to read an inbox on to the tasks of their runs. The zero Pokes has
// no tasks. It is safe for concurrent use.
type Pokes struct {
	mu      sync.Mutex
	pending map[runlog.Run]*hints
}

// hints are the pokes of one task.
type hints struct {
	token chan struct{} // has a token when the inbox is to be read
	count atomic.Uint64
}

// Poke makes the task of run read its inbox. A poke is a hint and may be lost.
func (p *Pokes) Poke(run runlog.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.pending[run]; h != nil {
		h.count.Add(1)
		select {
		case h.token <- struct{}{}:
		default:
		}
	}
}

// Enter returns the pokes of run until leave is called. Of several tasks of a run the
// last one receives them: the others have lost their steps.
func (p *Pokes) Enter(run runlog.Run) (pokes <-chan struct{}, leave func()) {
	h, leave := p.enter(run)
	return h.token, leave
}

func (p *Pokes) enter(run runlog.Run) (h *hints, leave func()) {
	h = &hints{token: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = map[runlog.Run]*hints{}
	}
	p.pending[run] = h
	return h, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pending[run] == h {
			delete(p.pending, run)
		}
	}
}
