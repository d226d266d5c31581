package runlog_test

import (
	"context"
	"errors"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// entries are the records of a log by their sequences.
type entries map[uint64]runlog.Entry

func (e entries) View(context.Context, runlog.Run, uint64) (runlog.View, error) {
	return runlog.View{}, errors.ErrUnsupported
}

func (e entries) Read(_ context.Context, _ runlog.Run, sequence uint64) (runlog.Entry, error) {
	return e[sequence], nil
}

// TestBackFindsWhatDoesNotFollow: a sequence with another version, or with another record of
// the same version, was used a second time, so records are lost.
func TestBackFindsWhatDoesNotFollow(t *testing.T) {
	entry := func(sequence, version, prev, nonce, prevNonce uint64) runlog.Entry {
		rec := &harnessv1.Record{Version: version, PrevSequence: prev, PrevNonce: prevNonce, Writer: &harnessv1.Writer{Nonce: nonce}}
		return runlog.Entry{Header: runlog.Header{Version: version}, Sequence: sequence, Record: rec}
	}
	newest := entry(12, 3, 11, 7, 6)
	for name, c := range map[string]struct {
		before runlog.Entry
		want   error
	}{
		"the record before":       {entry(11, 2, 10, 6, 5), nil},
		"another version":         {entry(11, 3, 10, 6, 5), runlog.ErrLost},
		"another of this version": {entry(11, 2, 10, 8, 5), runlog.ErrLost},
	} {
		all, err := runlog.Back(t.Context(), entries{11: c.before}, newest, 1)
		if !errors.Is(err, c.want) || err == nil && len(all) != 2 {
			t.Errorf("%s: %d records, %v", name, len(all), err)
		}
	}
}
