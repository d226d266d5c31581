// Package storetest changes the files of a NATS server that does not run: it leaves them as
// a loss of power, or a disk that forgets, would. InMemory lets a test binary and its servers store in memory.
package storetest

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// record is a message in a block of a stream.
type record struct {
	Sequence uint64
	// Offset and Size are its place in the block, in bytes.
	Offset, Size int64
}

// Block is a file with messages of a stream.
type Block struct {
	Path    string
	Records []record
}

// Blocks returns the blocks of a stream below dir, the store of a server, oldest first.
func Blocks(dir, stream string) ([]Block, error) {
	var blocks []Block
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".blk" || !strings.Contains(path, filepath.Join("streams", stream, "msgs")) {
			return err
		}
		b, err := read(path)
		blocks = append(blocks, b)
		return err
	})
	slices.SortFunc(blocks, func(a, b Block) int { return number(a.Path) - number(b.Path) })
	return blocks, err
}

func number(path string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
	return n
}

// Sizes of the fields in front of a message: the length of the record with a flag in its
// highest bit, the sequence, with flags too, the time, and the length of the subject.
const (
	header      = 4 + 8 + 8 + 2
	lengthFlags = 1 << 31
	eraseFlag   = 1 << 63
	tombFlag    = 1 << 62
)

func read(path string) (Block, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Block{}, err
	}
	b := Block{Path: path}
	for at := 0; at+header <= len(data); {
		size := int(binary.LittleEndian.Uint32(data[at:]) &^ lengthFlags)
		if size < header {
			return b, fmt.Errorf("%s: record of %d bytes at %d of %d", path, size, at, len(data))
		}
		if at+size > len(data) {
			break // the server was killed while it wrote this record
		}
		sequence := binary.LittleEndian.Uint64(data[at+4:])
		if sequence&(eraseFlag|tombFlag) == 0 {
			b.Records = append(b.Records, record{Sequence: sequence, Offset: int64(at), Size: int64(size)})
		}
		at += size
	}
	return b, nil
}

// cut removes the messages of a stream above sequence, as if they had never reached the
// disk: also the index, which a server that was killed has not written.
func cut(dir, stream string, sequence uint64) error {
	blocks, err := Blocks(dir, stream)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		for i, r := range b.Records {
			if r.Sequence <= sequence {
				continue
			}
			if i == 0 {
				err = os.Remove(b.Path)
			} else {
				err = os.Truncate(b.Path, r.Offset)
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return forget(dir, stream)
}

// forget removes the index of a stream, so that the server reads its blocks.
func forget(dir, stream string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "index.db" && strings.Contains(path, filepath.Join("streams", stream, "msgs")) {
			return os.Remove(path)
		}
		return err
	})
}

// Replace replaces directory to by a copy of from.
func Replace(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// CutNewest removes up to n of the newest messages of a stream, but not its first one, and
// returns how many; see cut.
func CutNewest(dir, stream string, n int) (removed int, err error) {
	blocks, err := Blocks(dir, stream)
	if err != nil {
		return 0, err
	}
	var all []uint64
	for _, b := range blocks {
		for _, r := range b.Records {
			all = append(all, r.Sequence)
		}
	}
	if len(all) < 2 {
		return 0, nil
	}
	n = min(n, len(all)-1)
	return n, cut(dir, stream, all[len(all)-1-n])
}
