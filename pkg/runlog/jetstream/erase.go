package jetstream

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// AckFloor is runlog.Log's.
func (l *Log) AckFloor(ctx context.Context, run runlog.Run, executor string) (uint64, error) {
	return 0, errors.New("not there yet")
}

// Erase is runlog.Log's.
func (l *Log) Erase(ctx context.Context, run runlog.Run, keep uint64) error {
	return errors.New("not there yet")
}
