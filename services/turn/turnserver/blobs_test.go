package turnserver

import (
	"context"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// countingBlobs counts how often each blob is read; a blob has 10 bytes.
type countingBlobs map[string]int

func (c countingBlobs) Blob(_ context.Context, _ runlog.Run, digest string) ([]byte, error) {
	c[digest]++
	return make([]byte, 10), nil
}

func TestBlobsAreReadOnceWhileThereIsRoom(t *testing.T) {
	reads := countingBlobs{}
	cache := newBlobCache(reads, 30)
	for _, digest := range []string{"a", "b", "c", "a", "d", "a", "b"} { // d drops b
		if data, err := cache.read(t.Context(), runlog.Run{Namespace: "n", ID: "r"}, digest); err != nil || len(data) != 10 {
			t.Fatal(len(data), err)
		}
	}
	if reads["a"] != 1 || reads["b"] != 2 || reads["c"] != 1 || reads["d"] != 1 {
		t.Errorf("reads %v", reads)
	}
	if used := cache.blobs.Used(); used != 30 {
		t.Errorf("%d bytes", used)
	}
}

func TestBlobsOfAnotherRunAreSeparate(t *testing.T) {
	reads := countingBlobs{}
	cache := newBlobCache(reads, 30)
	for _, id := range []string{"r", "s", "r"} {
		if _, err := cache.read(t.Context(), runlog.Run{Namespace: "n", ID: id}, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if reads["a"] != 2 {
		t.Errorf("reads %v, want one for each run", reads)
	}
}
