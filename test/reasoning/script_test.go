package reasoning_test

import (
	"fmt"
	"sync"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// variation answers as models do that reason: with several pieces of reasoning, parallel
// calls, redacted and omitted texts, silence, streams that break off, and errors in them.
type variation struct {
	mu       sync.Mutex
	requests int
	calls    int
	// name makes answers differ from those of other services.
	name string
	// faultless leaves out streams that break off.
	faultless bool
}

// reply returns the reply to the next request.
func (v *variation) reply(*modeltest.Request) modeltest.Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.requests
	v.requests++
	think := func(text string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: text}}
	}
	call := func() modeltest.ReplyPart {
		v.calls++
		return modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("%scall-%d", v.name, v.calls), Name: "nothing", Arguments: fmt.Sprintf(`{"n": %d}`, v.calls)}}
	}
	text := func(text string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Text: fmt.Sprintf("%s (%s%d)", text, v.name, n), Phase: "commentary"}
	}
	usage := &modeltest.Usage{Input: 1000 + uint64(n), Output: 200, Cached: 600, Written: 100, Reasoning: 150}
	r := modeltest.Reply{Usage: usage}
	switch n % 10 {
	case 1:
		r.Parts = []modeltest.ReplyPart{think("First. "), text("I look at both."), call(), call()}
	case 2:
		r.Parts = []modeltest.ReplyPart{think(""), call()} // omitted
	case 3:
		r.Parts = []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Redacted: true}}, think("And then?"), call()}
	case 4:
		r.Parts = []modeltest.ReplyPart{think("Large."), call(), call(), call()}
		r.Parts[0].Thinking.Size = 20 << 10
	case 5:
		r.Parts = []modeltest.ReplyPart{think("Silent."), text("I am thinking about it.")}
	case 6:
		if !v.faultless {
			r.Fault = modeltest.FaultCut
		}
		r.Parts = []modeltest.ReplyPart{think("This breaks off."), text("Half of"), call()}
	case 8:
		if !v.faultless {
			r.Fault = modeltest.FaultError
		}
		r.Parts = []modeltest.ReplyPart{think("This fails."), text("Half of"), call()}
	default:
		r.Parts = []modeltest.ReplyPart{think(fmt.Sprintf("Thought %d.", n)), call()}
	}
	return r
}
