package runspec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// AttachFlags name files that a goal or a message comes with. They are the user's own:
// the workspace does not bound them.
type AttachFlags struct {
	Attach []string `sep:"none" placeholder:"FILE" help:"Image (PNG, JPEG, GIF, WebP) or PDF document that the model is to see; repeatable, at most 20."`
}

// maxAttached bounds the files of one request, in bytes after images are scaled: a
// gateway takes requests of 32 MiB.
const maxAttached = 28 << 20

// Attachments reads and checks the files.
func (f *AttachFlags) Attachments() ([]*harnessv1.Media, error) {
	if len(f.Attach) > media.MaxParts {
		return nil, fmt.Errorf("--attach: %d files; expected at most %d", len(f.Attach), media.MaxParts)
	}
	var files []*harnessv1.Media
	var total uint64
	for _, name := range f.Attach {
		file, err := attachment(name)
		if failed := (*os.PathError)(nil); errors.As(err, &failed) {
			return nil, console.FileError("--attach", err)
		}
		if err != nil {
			return nil, fmt.Errorf("--attach %s: %w", name, err)
		}
		if total += media.Bytes(file); total > maxAttached {
			return nil, fmt.Errorf("--attach %s: the files are larger than %s together; send some with another message", name, media.Size(maxAttached))
		}
		files = append(files, file)
	}
	return files, nil
}

// attachment reads one file, an image as it is to be stored.
func attachment(name string) (*harnessv1.Media, error) {
	if name == "" {
		return nil, errors.New("missing file")
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, media.MaxData+1))
	if err != nil {
		return nil, err
	}
	file, data, err := media.Check(filepath.Base(name), data)
	if err != nil {
		return nil, err
	}
	file.Data = data
	return file, nil
}
