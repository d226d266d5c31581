package guard

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// A folder that cannot be opened because this process or the machine has no room for one more
// open file looks like a missing one. A comparison with it would remove the present file.

// scarcity notices that files could not be opened for want of descriptors or memory.
type scarcity struct{ err error }

// see returns err, and notices it.
func (s *scarcity) see(err error) error {
	for _, scarce := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if s.err == nil && errors.Is(err, scarce) {
			s.err = fmt.Errorf("repositories cannot be read: %w", scarce)
		}
	}
	return err
}

const (
	// patience is how long the comparison after a call waits for descriptors; other calls
	// release theirs.
	patience = 30 * time.Second
	// pause is between two tries.
	pause = 20 * time.Millisecond
)
