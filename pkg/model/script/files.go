package script

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MaxFile is the maximum size of a script, in bytes.
const MaxFile = 16 << 20

// Files are the files that scripts are read from. The zero value is every file of this
// machine.
//
// A path within Dir is opened inside of it: a link that leads out of Dir is an error, also
// if it replaces a folder while the file is opened. Devices, pipes and files of more than
// MaxFile bytes are errors everywhere.
type Files struct {
	// Dir is the folder of the operator's scripts; a relative path is in it. Empty means
	// none.
	Dir string
	// Only: there are no other scripts.
	Only bool
}

// Within returns the path of a file relative to Dir, by its name alone: links are not
// followed. The error of a file elsewhere names what to do.
func (f Files) Within(path string) (rel string, err error) {
	if f.Dir == "" {
		return "", fmt.Errorf("%s: scripted models are files of a folder of the operator, and there is none here: start `harness serve` with --scripts DIR, or run it in one process with `harness run`", path)
	}
	for _, dir := range f.roots() {
		rel = path
		if filepath.IsAbs(path) {
			if rel, err = filepath.Rel(dir, path); err != nil {
				continue
			}
		}
		if filepath.IsLocal(rel) {
			return filepath.Clean(rel), nil
		}
	}
	return "", fmt.Errorf("%s: scripted models are files below %s only: move it there, or change --scripts", path, f.Dir)
}

// roots returns the names that Dir has.
func (f Files) roots() []string {
	roots := []string{f.Dir}
	if target, err := filepath.EvalSymlinks(f.Dir); err == nil && target != f.Dir {
		roots = append(roots, target)
	}
	return roots
}

// Load reads the script in a file. An error names the file and the line:
// "a.yaml:3: …".
func (f Files) Load(path string) (*Script, error) {
	file, err := f.open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := contents(file)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parse(path, data)
}

// open opens a file without waiting for another process, as a pipe would.
func (f Files) open(path string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	rel, outside := f.Within(path)
	var file *os.File
	var err error
	switch {
	case outside == nil:
		var root *os.Root
		if root, err = os.OpenRoot(f.Dir); err == nil {
			defer func() { _ = root.Close() }()
			file, err = root.OpenFile(rel, flags, 0)
		}
	case f.Only:
		return nil, outside
	default:
		file, err = os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return file, nil
}

// contents returns the bytes of a regular file.
func contents(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is a %s: expected a regular file", kindOf(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		return nil, fmt.Errorf("it exceeds %d bytes", MaxFile)
	}
	return data, err
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "special file"
}

// unreadable returns an error of the file system with the path once.
func unreadable(path string, err error) error {
	var cause *os.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	text := strings.ReplaceAll(err.Error(), "path escapes from parent", "a link leads out of the folder of --scripts")
	return fmt.Errorf("%s: read the script: %s", path, text)
}
