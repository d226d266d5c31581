package jetstream

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestMarks checks that the marks cover all distances back from the newest message, and
// that they are few.
func TestMarks(t *testing.T) {
	t.Parallel()
	var m marks
	const n = 100_000
	for s := uint64(1); s <= n; s++ {
		m.add(mark{sequence: s, digest: s})
		m.add(mark{sequence: s / 2, digest: 7}) // older messages are ignored
	}
	all := m.oldestFirst()
	if len(all) > 2*markLevels+1 || all[len(all)-1] != (mark{n, n}) {
		t.Fatalf("%d marks, the newest is %v", len(all), all[len(all)-1])
	}
	for i, k := range all {
		if i > 0 && k.sequence <= all[i-1].sequence || k.digest != k.sequence {
			t.Fatalf("mark %d of %v", i, all)
		}
	}
	// For each distance there is a mark at least as far, and not much farther.
	for d := uint64(1); d < n/32; d *= 3 {
		found := false
		for _, k := range all {
			back := n - k.sequence
			found = found || back >= d && back <= 33*d
		}
		if !found {
			t.Errorf("no mark about %d back in %v", d, all)
		}
	}
	m.cut(n / 3)
	if last := m.oldestFirst(); len(last) == 0 || last[len(last)-1].sequence > n/3 || m.newest.sequence != last[len(last)-1].sequence {
		t.Errorf("after a cut: %v", last)
	}
	m.cut(0)
	if left := m.oldestFirst(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestMarkWhoseSequenceIsUsedAgain asks for the mark of a lost message while another one is
// stored with its sequence: the mark is replaced then, and does not count as erased, by which
// its record would stay cached.
func TestMarkWhoseSequenceIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := &lone{dir: filepath.Join(t.TempDir(), "now"), listen: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.server.Stop() })
	if err := Provision(t.Context(), Config{URL: s.url}, Layout{}); err != nil {
		t.Fatal(err)
	}
	writer, reader := s.open(t), s.open(t)
	for n := range 300 {
		stored := make(chan uint64)
		go func() { stored <- kept(t, writer, first(fmt.Sprint("r", n))).Sequence }()
		state, err := reader.marked(t.Context(), 0, mark{sequence: uint64(n + 1), digest: 1})
		if sequence := <-stored; state != markReplaced || err != nil || sequence != uint64(n+1) {
			t.Fatalf("the mark of %d, which is stored at %d: state %d, %v", n+1, sequence, state, err)
		}
	}
}
