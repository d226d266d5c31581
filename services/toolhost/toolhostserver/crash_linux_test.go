package toolhostserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// lives are the hosts of one ledger, one after the other.
type lives struct {
	mu      sync.Mutex
	changed sync.Cond
	host    *hostProcess // nil while none serves
	number  int
	over    bool // no new calls
}

// next waits for a host after that of the number; the last one it gives again.
func (l *lives) next(after int) (*hostProcess, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.host == nil || l.number <= after && !l.over {
		l.changed.Wait()
	}
	return l.host, l.number
}

func (l *lives) set(host *hostProcess, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if host != nil {
		l.number++
	}
	l.host, l.over = host, over
	l.changed.Broadcast()
}

func (l *lives) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// tally is what callers were answered.
type tally struct {
	mu sync.Mutex
	// Calls by how they were answered; resent are those of the done ones that
	// had to be sent more than once.
	done, resent, unknown int
	// Lines that a call had when it was answered.
	lines map[string]int
}

// TestAHostThatIsKilledAtAnyMoment kills a host 100 times while callers send it
// commands that append their id to a file, and send each again, under the same
// id, until it is answered.
func TestAHostThatIsKilledAtAnyMoment(t *testing.T) {
	const kills, callers = 100, 4
	begin, ledger, workspace := time.Now(), t.TempDir(), t.TempDir()
	seed := uint64(begin.UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	l, all := &lives{}, &tally{lines: make(map[string]int)}
	l.changed.L = &l.mu
	ctx, release := context.WithTimeout(context.Background(), 2*time.Minute)
	defer release()

	var open atomic.Int64 // requests that wait for their answer
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := 0; !l.ended(); i++ {
				id := fmt.Sprintf("c-%d-%d", caller, i)
				answerOf(ctx, t, l, all, workspace, id, i, &open)
				if ctx.Err() != nil || t.Failed() {
					return
				}
			}
		})
	}

	var early, inCall int
	for kill := range kills {
		host := launch(t, ledger)
		serving := make(chan struct{})
		go func() {
			defer close(serving)
			if host.serves() {
				l.set(host, false)
			}
		}()
		// A moment of the host's first 100 ms; of each fourth before it serves too.
		if kill%4 != 0 {
			<-serving
		}
		<-time.After(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
		select {
		case <-serving:
		default:
			early++
		}
		if open.Load() > 0 {
			inCall++
		}
		_ = host.process.Process.Kill()
		<-serving
		l.set(nil, false)
		host.kill()
	}
	last := serve(t, ledger)
	l.set(last, true)
	wait.Wait()
	if ctx.Err() != nil {
		t.Fatal("a call was never answered")
	}

	t.Logf("%d kills, %d before the host served, %d with a request open, in %v", kills, early, inCall, time.Since(begin))
	silent := 0
	lines := linesByID(t, workspace)
	for id, n := range all.lines {
		if lines[id] != n {
			t.Errorf("%s: %d lines when it was answered, %d in the end", id, n, lines[id])
		}
		if n == 0 {
			silent++
		}
	}
	for id, n := range lines {
		if _, answered := all.lines[id]; n > 1 || !answered {
			t.Errorf("%s: %d lines, answered %v", id, n, answered)
		}
	}
	t.Logf("%d calls: %d DONE with one line (%d of them sent again), %d UNKNOWN with one line, %d UNKNOWN with none",
		len(all.lines), all.done, all.resent, all.unknown-silent, silent)
	if all.unknown == 0 {
		t.Error("no kill met a call that ran")
	}
}

// answerOf sends a call until it is answered and holds the answer against the
// file.
func answerOf(ctx context.Context, t *testing.T, l *lives, all *tally, workspace, id string, i int, open *atomic.Int64) {
	line := "echo " + id + " >> lines"
	req := commandRequest(workspace, id, []string{line, "sleep 0.02; " + line, line + "; sleep 0.02"}[i%3])
	var host *hostProcess
	for sent, number := 1, 0; ctx.Err() == nil; sent++ {
		host, number = l.next(number)
		if req.LedgerId == "" {
			described, err := host.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
			if err != nil {
				sent--
				continue
			}
			req.LedgerId = described.GetLedgerId()
		}
		open.Add(1)
		resp, err := host.ExecuteTool(ctx, req)
		open.Add(-1)
		if err != nil {
			continue // nobody knows whether it began
		}
		n := linesByID(t, workspace)[id]
		all.mu.Lock()
		defer all.mu.Unlock()
		all.lines[id] = n
		switch outcome := resp.GetOutcome(); {
		case outcome == ended && n == 1:
			all.done++
			if sent > 1 {
				all.resent++
			}
		case outcome == unknown && n <= 1 && sent > 1:
			all.unknown++
		default:
			t.Errorf("%s: %v with %d lines, sent %d times: %q", id, outcome, n, sent, resp.GetResult())
		}
		return
	}
}

// linesByID counts the lines of each call.
func linesByID(t *testing.T, workspace string) map[string]int {
	content, err := os.ReadFile(filepath.Join(workspace, "lines"))
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	lines := make(map[string]int)
	for id := range strings.FieldsSeq(string(content)) {
		lines[id]++
	}
	return lines
}
