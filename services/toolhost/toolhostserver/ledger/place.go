package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// lockPause is the time between two attempts to lock a folder.
const lockPause = 10 * time.Millisecond

// placeOf returns the place of a ledger in dir on this machine.
func placeOf(dir string) (string, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return toolhost.PlaceOf(hostname, dir), nil
}

// lockFolder opens a folder and locks it exclusively until the process ends. On file
// systems that cannot lock folders (some network file systems) there is only the lock of
// the file in it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == unix.EWOULDBLOCK && time.Now().Before(end), err == unix.EINTR:
			continue
		case err == unix.EWOULDBLOCK:
			return nil, errors.Join(inUse(dir), f.Close())
		}
		return f, nil
	}
}
