package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBatches: the first step begins alone, and those that came meanwhile begin together
// as far as their limits allow.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s suspects
		began := time.Now()
		var said []string
		var mu sync.Mutex
		admit := func(name string, limit uint32, lasts time.Duration) {
			go func() {
				company, over, err := s.admit(t.Context(), limit)
				if err != nil {
					return
				}
				mu.Lock()
				said = append(said, fmt.Sprintf("%v %s of %d", time.Since(began), name, company))
				mu.Unlock()
				time.Sleep(lasts)
				over()
				over() // a second time changes nothing
			}()
			synctest.Wait()
		}
		admit("a", 64, time.Second)
		admit("b", 3, time.Hour) // does not end in its time
		admit("c", 64, time.Second)
		admit("d", 1, time.Hour)
		admit("e", 2, time.Second) // b and c leave no room for it
		admit("f", 64, time.Second)
		admit("g", 64, time.Second)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		slices.Sort(said)
		want := []string{
			"0s a of 1",
			"11s d of 1", "1s b of 3", "1s c of 3", "1s f of 3",
			"21s e of 2", "21s g of 2",
		}
		if !slices.Equal(said, want) {
			t.Errorf("began\n%q, want\n%q", said, want)
		}
	})
}

// TestStepThatStopsLeavesItsBatch: a step that is given up while it waits delays no other.
func TestStepThatStopsLeavesItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s suspects
		_, over, err := s.admit(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			synctest.Wait()
			cancel(gone)
		}()
		if _, _, err := s.admit(ctx, 1); !errors.Is(err, gone) {
			t.Errorf("the step that stopped has %v", err)
		}
		over()
		began := time.Now()
		if _, over, err = s.admit(t.Context(), 1); err != nil || time.Since(began) != 0 {
			t.Errorf("the next began after %v with %v", time.Since(began), err)
		}
		over()
	})
}
