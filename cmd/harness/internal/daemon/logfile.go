package daemon

import (
	"fmt"
	"os"
	"sync"
)

// Bounds of the log: maxLogs files of maxLog bytes.
const (
	maxLog  = 10 << 20
	maxLogs = 3
)

// rotatingFile is a log of bounded size: NAME, then NAME.1 and NAME.2, the older ones. It is
// safe for concurrent use.
type rotatingFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLog opens a log for appending.
func openLog(path string, limit int64) (*rotatingFile, error) {
	f := &rotatingFile{path: path, limit: limit}
	return f, f.open()
}

func (f *rotatingFile) open() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write appends a line, to another file if this one is full.
func (f *rotatingFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size > 0 && f.size+int64(len(line)) > f.limit {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

func (f *rotatingFile) rotate() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	for i := maxLogs - 1; i > 0; i-- {
		if err := os.Rename(f.name(i-1), f.name(i)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return f.open()
}

func (f *rotatingFile) name(i int) string {
	if i == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, i)
}

// Close closes the file.
func (f *rotatingFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// LogFiles returns the paths of the log, the oldest first; some may not exist.
func LogFiles(dir string) []string {
	f := &rotatingFile{path: LogFile(dir)}
	var paths []string
	for i := maxLogs - 1; i >= 0; i-- {
		paths = append(paths, f.name(i))
	}
	return paths
}
