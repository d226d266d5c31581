package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLink reports a path with a link in it.
var ErrLink = errors.New("a part of its path is a link; a folder that a run works in is opened without following links")

// OpenFolder opens a folder by an absolute path of which no part is a link; its error is ErrLink
// if one is. A move or replacement during the call leads nowhere else: the result is the folder
// that had the path at one moment. It cannot be read: RootOf opens it for that.
func OpenFolder(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s is not an absolute path", path)
	}
	return open(filepath.Clean(path), true)
}

// OpenPath is OpenFolder for a file too. The result has a Stat and cannot be read.
func OpenPath(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s is not an absolute path", path)
	}
	return open(filepath.Clean(path), false)
}

// OpenRoot is OpenFolder, and confines accesses to the folder.
func OpenRoot(path string) (*os.Root, error) {
	f, err := OpenFolder(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return RootOf(f)
}
