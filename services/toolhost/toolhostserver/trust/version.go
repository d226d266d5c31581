package trust

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

const (
	// maxFile bounds a file whose content is compared, maxText one whose text is kept, in bytes.
	maxFile = 1 << 20
	maxText = 64 << 10
)

// Version is a content of a file.
type Version struct {
	// Digest is the SHA-256 of the content in lower-case hexadecimal, another text for a path that is no
	// file that can be compared by it, and empty for no file.
	Digest string `json:"digest,omitempty"`
	// Text is the content, if Kept is set.
	Text []byte `json:"text,omitempty"`
	Kept bool   `json:"kept,omitempty"`
	// Link is where the path leads that is a link.
	Link       string `json:"link,omitempty"`
	Executable bool   `json:"executable,omitempty"`
}

// Exists reports whether there is a file.
func (v Version) Exists() bool { return v.Digest != "" }

// Of returns the version with a content.
func Of(data []byte) Version {
	v := Version{Digest: content.Digest(data)}
	if len(data) <= maxText {
		v.Text, v.Kept = data, true
	}
	return v
}

// Read returns the version at a path; links are followed.
func Read(path string) Version {
	info, err := os.Lstat(path)
	if err != nil {
		return Version{}
	}
	return ReadWith(info, func() (string, error) { return os.Readlink(path) }, func() (*os.File, error) {
		return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
}

// ReadWith returns the version of a path that info describes, without following it. link reads it as a link,
// and open opens it.
func ReadWith(info fs.FileInfo, link func() (string, error), open func() (*os.File, error)) Version {
	var v Version
	if info.Mode()&fs.ModeSymlink != 0 {
		v.Link, _ = link() // a link that vanishes is a content that cannot be read
	}
	f, err := open()
	if err != nil {
		v.Digest = fmt.Sprintf("not readable, %s %s", info.Mode().Type(), v.Link)
		return v
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		v.Digest = fmt.Sprintf("no file of at most %d bytes: %s", maxFile, v.Link)
		if err == nil {
			v.Digest += fmt.Sprintf(" %s %d %s", info.Mode().Type(), info.Size(), lastChange(info))
		}
		return v
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		v.Digest = "not readable " + v.Link
		return v
	}
	read := Of(data)
	read.Link, read.Executable = v.Link, info.Mode().Perm()&0o111 != 0
	return read
}
