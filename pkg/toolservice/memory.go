package toolservice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Memory keeps the keys of calls with their results, also when the process dies.
type Memory interface {
	// Start stores that a call begins. result is the stored result of an earlier call with the
	// key; begun: an earlier one began, and its end was not stored.
	Start(key string) (result *harnessv1.ToolServiceResult, begun bool, err error)
	// End stores the result of a call.
	End(key string, result *harnessv1.ToolServiceResult) error
}

// Folder returns a Memory in a folder, which is made if it is missing. It has one or two files for
// each call, which you may delete once no run can ask for the call: a day after its end. No two
// processes may use it at the same time.
func Folder(dir string) (Memory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return folder(dir), nil
}

type folder string

// keyForm is the form of keys, which name files.
var keyForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{1,128}$`) })

// Start implements Memory.
func (f folder) Start(key string) (*harnessv1.ToolServiceResult, bool, error) {
	if !keyForm().MatchString(key) {
		return nil, false, fmt.Errorf("key %q: expected hexadecimal digits", key)
	}
	data, err := os.ReadFile(f.path(key, "result"))
	switch {
	case err == nil:
		result := &harnessv1.ToolServiceResult{}
		return result, false, proto.Unmarshal(data, result)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	mark, err := os.OpenFile(f.path(key, "begun"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return nil, false, errors.Join(mark.Sync(), mark.Close(), f.sync())
}

// End implements Memory.
func (f folder) End(key string, result *harnessv1.ToolServiceResult) error {
	data, err := proto.Marshal(result)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.path(key, "new"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.path(key, "new"), f.path(key, "result")), f.sync())
}

// sync makes new names in the folder durable.
func (f folder) sync() error {
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f folder) path(key, kind string) string { return filepath.Join(string(f), key+"."+kind) }
