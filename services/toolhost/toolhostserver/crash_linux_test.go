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

// succession has the hosts of one ledger, one after the other.
type succession struct {
	mu      sync.Mutex
	changed sync.Cond
	host    *hostProcess // nil while no host serves
	number  int
	over    bool // no new calls
}

// next waits for a host with a higher number than after. It returns the last host again.
func (l *succession) next(after int) (*hostProcess, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.host == nil || l.number <= after && !l.over {
		l.changed.Wait()
	}
	return l.host, l.number
}

func (l *succession) set(host *hostProcess, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if host != nil {
		l.number++
	}
	l.host, l.over = host, over
	l.changed.Broadcast()
}

func (l *succession) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// tally counts the responses to callers.
type tally struct {
	mu sync.Mutex
	// Calls by outcome. resent counts the done ones that were sent more than once.
	done, resent, unknown int
	// lines has the number of lines of each call at the time of its response.
	lines map[string]int
}

func TestHostKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("kills 12 hosts")
	}
	t.Parallel()
	killAtAnyMoment(t, 12)
}

func TestSystemHostKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	killAtAnyMoment(t, 100)
}

// killAtAnyMoment kills a host some times. Meanwhile callers send commands that append their id
// to a file, and send each again, with the same id, until there is a response.
func killAtAnyMoment(t *testing.T, kills int) {
	const callers = 4
	begin, ledger, workspace := time.Now(), t.TempDir(), t.TempDir()
	seed := uint64(begin.UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	l, all := &succession{}, &tally{lines: make(map[string]int)}
	l.changed.L = &l.mu
	ctx, release := context.WithTimeout(context.Background(), 2*time.Minute)
	defer release()

	var open atomic.Int64 // requests without a response
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := 0; !l.ended(); i++ {
				id := fmt.Sprintf("c-%d-%d", caller, i)
				sendUntilResponse(ctx, t, l, all, workspace, id, i, &open)
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
		// Kill in the first 100 ms after the host serves; every fourth time, after its start.
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
		t.Fatal("a call had no response")
	}

	t.Logf("%d kills, %d before the host served, %d with a request open, in %v", kills, early, inCall, time.Since(begin))
	withoutLine := 0
	lines := linesByID(t, workspace)
	for id, n := range all.lines {
		if lines[id] != n {
			t.Errorf("%s: %d lines at its response, %d at the end", id, n, lines[id])
		}
		if n == 0 {
			withoutLine++
		}
	}
	for id, n := range lines {
		if _, responded := all.lines[id]; n > 1 || !responded {
			t.Errorf("%s: %d lines, response %v", id, n, responded)
		}
	}
	t.Logf("%d calls: %d DONE with one line (%d of them sent again), %d UNKNOWN with one line, %d UNKNOWN with none",
		len(all.lines), all.done, all.resent, all.unknown-withoutLine, withoutLine)
	if all.unknown == 0 {
		t.Error("no kill interrupted a running call")
	}
}

// sendUntilResponse sends a call until there is a response and compares it with the file.
func sendUntilResponse(ctx context.Context, t *testing.T, l *succession, all *tally, workspace, id string, i int, open *atomic.Int64) {
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
			continue // the call may have begun
		}
		n := linesByID(t, workspace)[id]
		all.mu.Lock()
		defer all.mu.Unlock()
		all.lines[id] = n
		switch outcome := resp.GetOutcome(); {
		case outcome == done && n == 1:
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

// linesByID returns the number of lines of each call.
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
