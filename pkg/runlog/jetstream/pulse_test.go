package jetstream

import (
	"strings"
	"testing"
	"time"
)

// TestHungServerIsNoticed checks that a server whose connection stays open and carries
// nothing is reported within the takeover time by a process that asks it nothing, and
// that this ends when it answers.
func TestHungServerIsNoticed(t *testing.T) {
	l, n, _ := overNetwork(t, 0)
	if err := l.Connected(); err != nil {
		t.Fatal(err)
	}
	all := func([]byte) bool { return true }
	begun := time.Now()
	n.loseRequests.Store(&all)
	n.loseReplies.Store(&all)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.Connected() == nil {
		<-tick.C
	}
	if took := time.Since(begun); took > l.takeover() {
		t.Errorf("noticed after %v, the takeover time is %v", took, l.takeover())
	}
	if err := l.Connected(); !strings.Contains(err.Error(), "has not answered since") {
		t.Errorf("got %v", err)
	}
	n.loseRequests.Store(nil)
	n.loseReplies.Store(nil)
	for end := time.Now().Add(time.Minute); l.Connected() != nil; <-tick.C {
		if time.Now().After(end) {
			t.Fatal(l.Connected())
		}
	}
}

// TestHungServerIsLeft checks that a connection whose server hangs is given up for
// another one soon after the takeover time.
func TestHungServerIsLeft(t *testing.T) {
	l, n, _ := overNetwork(t, 0)
	all := func([]byte) bool { return true }
	n.loseRequests.Store(&all)
	again := make(chan struct{})
	defer l.hookReconnect(func() { close(again) })()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.pulse.lost.Load() == nil { // until the connection is given up
		<-tick.C
	}
	n.loseRequests.Store(nil)
	select {
	case <-again:
	case <-time.After(time.Minute):
		t.Fatal("not connected again")
	}
	if err := l.Connected(); err != nil {
		t.Error(err)
	}
}
