// Package program builds the programs that tests run, once for all test binaries.
//
//	harness := program.Path(t)               // cmd/harness
//
// Programs are kept in .cache/program below the module's root, with the flags of the environment. The go
// command neither compiles nor links unchanged code again, so the second package of a test
// run waits for about a second. A lock on a file keeps two packages from building the same program at the
// same time. If the module's root cannot be written, each test binary builds into a temporary folder.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// variable names a program that is used instead of one that is built, for Path. It must exist.
const variable = "HARNESS"

// Path returns the path of cmd/harness, and declares that the test depends on its sources.
func Path(tb testing.TB) string {
	tb.Helper()
	Rely(tb)
	path, err := Harness()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Harness builds cmd/harness with tags, for a TestMain. Without tags, the program that variable names is
// used if the variable is set.
func Harness(tags ...string) (string, error) {
	if given := os.Getenv(variable); given != "" && len(tags) == 0 {
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("%s=%s: %w", variable, given, err)
		}
		return given, nil
	}
	name := strings.Join(append([]string{"harness"}, tags...), "-")
	return Build(name, "github.com/harnessmesh/harnessmesh/cmd/harness", "-tags", strings.Join(tags, ","))
}

// NATS builds the server of the version that the module requires, for a TestMain.
func NATS() (string, error) { return Build("nats-server", natsPackage) }

const natsPackage = "github.com/nats-io/nats-server/v2"

// Build builds a main package of this module or of one that it requires, under a name that is unique for
// the package and the arguments of go build.
func Build(name, pkg string, args ...string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, unlock, err := lockedFolder(root, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	// Without debug information and the state of the repository: tests need neither, and a commit would link it again.
	args = append([]string{"build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path}, append(args, pkg)...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return path, nil
}

// lockedFolder returns the folder of the programs and locks a name in it.
func lockedFolder(root, name string) (dir string, unlock func(), err error) {
	dir = filepath.Join(root, ".cache", "program")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		dir, err = temporary()
		return dir, func() {}, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrPermission) {
		dir, err = temporary()
		return dir, func() {}, err
	}
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		_ = lock.Close()
		return "", nil, fmt.Errorf("%s: %w", lock.Name(), err)
	}
	return dir, func() { _ = lock.Close() }, nil
}

var temporary = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "harness-program") })

// Rely declares that a test depends on the programs built from this module. The go command tracks only the
// files that a test itself reads, and would show a cached result after a change of a program.
func Rely(tb testing.TB) {
	tb.Helper()
	if err := relied(); err != nil {
		tb.Fatal(err)
	}
}

// The go command tracks reads from the start of the first test on.
var relied = sync.OnceValue(func() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	for _, folder := range []string{"cmd", "pkg", "services"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
})

// moduleRoot returns the nearest folder with a go.mod, from the working directory upwards. It fails with
// fs.ErrNotExist outside of a module.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("go.mod above the working directory: %w", fs.ErrNotExist)
		}
		dir = parent
	}
}
