package background

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/redraw"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// output is the file with the output of a background command, up to
// toolhost.BackgroundBytes; the rest is dropped. Many goroutines may use it.
type output struct {
	path string
	mu   sync.Mutex
	file *os.File
	size int64
	// dropped counts the bytes that the file does not have; tail is the end of the whole output,
	// as a terminal shows it, and shown writes to it.
	dropped int64
	tail    *toolhost.Excerpt
	shown   *redraw.Filter
	// grown is closed when the output has grown, and replaced.
	grown chan struct{}
}

// outputs is the folder with the outputs of background commands, a folder for each run.
type outputs string

func (o outputs) folder(run string) string {
	sum := sha256.Sum256([]byte(run))
	return filepath.Join(string(o), hex.EncodeToString(sum[:8]))
}

// path returns the file for the output of a background command of a run.
func (o outputs) path(run, id string) string { return filepath.Join(o.folder(run), id) }

// keep removes the outputs of all runs but some.
func (o outputs) keep(runs []string) error {
	kept := make(map[string]bool)
	for _, run := range runs {
		kept[filepath.Base(o.folder(run))] = true
	}
	folders, _ := os.ReadDir(string(o)) // missing without a background command
	var failure error
	for _, folder := range folders {
		if !kept[folder.Name()] {
			failure = errors.Join(failure, os.RemoveAll(filepath.Join(string(o), folder.Name())))
		}
	}
	return failure
}

func openOutput(path string) (*output, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	tail := toolhost.NewExcerpt(0, toolhost.BackgroundTail)
	return &output{path: path, file: file, tail: tail, shown: redraw.NewFilter(tail), grown: make(chan struct{})}, nil
}

// Write appends p. It never fails: what cannot be stored is dropped, so that the command
// does not stop.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.shown.Write(p)
	room := min(int64(len(p)), toolhost.BackgroundBytes-o.size)
	n, err := o.file.Write(p[:room])
	o.size += int64(n)
	if err != nil {
		n = min(n, int(room))
	}
	o.dropped += int64(len(p) - n)
	close(o.grown)
	o.grown = make(chan struct{})
	return len(p), nil
}

// state returns the bytes stored and dropped, and a channel that is closed when more arrive.
func (o *output) state() (size, dropped int64, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size, o.dropped, o.grown
}

func (o *output) tailText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.shown.Close() // an excerpt takes all
	return o.tail.Text("Read it with command_output.")
}

func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Close()
}

// readOutput returns up to limit bytes of an output from an offset on, as a terminal shows them,
// the offset after them, and how many bytes the file has after that. A file that is no longer
// there is empty. What follows the last line break is left for the next read if there is more to
// read. Frames of progress that a later one draws over do not count: the read continues after them.
func readOutput(path string, offset, limit int64) (text string, next, left int64, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", offset, 0, nil
	}
	if err != nil {
		return "", offset, 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", offset, 0, err
	}
	size := info.Size()
	next = offset
	for n := limit; offset < size; n *= 2 {
		data := make([]byte, min(n, size-offset))
		read, err := file.ReadAt(data, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", offset, 0, err
		}
		whole := int64(read) >= size-offset
		if data = data[:read]; !whole {
			data = wholeLines(data)
		}
		shown := redraw.Text(string(data))
		if next > offset && int64(len(shown)) > limit {
			break // too much: the former read counts
		}
		text, next = shown, offset+int64(len(data))
		if whole || read < len(data) || int64(len(shown)) > limit/2 {
			break
		}
	}
	return text, next, max(0, size-next), nil
}

// wholeLines returns the data up to its last line break, all of it if it has none.
func wholeLines(data []byte) []byte {
	for i := len(data) - 1; i >= 0; i-- {
		if data[i] == '\n' {
			return data[:i+1]
		}
	}
	return data
}
