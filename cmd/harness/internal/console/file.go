package console

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// FileError returns an error about a file that a flag names, in words for its user. Other errors are returned
// with the flag in front of them.
func FileError(flag string, err error) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", flag, err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %s does not exist: correct the path, or create the file", flag, failed.Path)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s: %s is a directory: name a file", flag, failed.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %s: permission denied: let your user read it", flag, failed.Path)
	}
	return fmt.Errorf("%s: %w", flag, err)
}
