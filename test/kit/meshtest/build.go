package meshtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Binaries are the programs of a mesh.
type Binaries struct {
	// Harness is built with failpoints.
	Harness string
	// NATS is the server version that the module requires.
	NATS string
}

// Build builds both programs into dir. root is the path of the module's root.
func Build(root, dir string) (Binaries, error) {
	b := Binaries{Harness: filepath.Join(dir, "harness"), NATS: filepath.Join(dir, "nats-server")}
	if err := Touch(filepath.Join(root, "cmd"), filepath.Join(root, "pkg"), filepath.Join(root, "services")); err != nil {
		return b, err
	}
	build := func(args ...string) error {
		cmd := exec.Command("go", append([]string{"build"}, args...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %v: %w\n%s", args, err, out)
		}
		return nil
	}
	var other sync.WaitGroup
	var natsErr error
	other.Go(func() { natsErr = build("-o", b.NATS, "github.com/nats-io/nats-server/v2") })
	err := build("-tags", "failpoint", "-o", b.Harness, "./cmd/harness")
	other.Wait()
	if err == nil {
		err = natsErr
	}
	return b, err
}

// Run builds both programs for a package two folders below the module's root and runs its
// tests. It returns their exit code. dir has the programs while the tests run.
func Run(m *testing.M, b *Binaries, dir *string) int {
	made, err := os.MkdirTemp("", "harness-mesh")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(made) }()
	if *b, err = Build("../..", made); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if dir != nil {
		*dir = made
	}
	return m.Run()
}

// Touch reads the metadata of all files below roots. The go command does not see that a
// test depends on a binary that it runs, and would show a cached result; it does
// track the files whose metadata a test reads.
func Touch(roots ...string) error {
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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
}

// moduleRoot returns the nearest folder with a go.mod, from the working directory
// upwards. It fails with fs.ErrNotExist outside of a module.
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

var touched sync.Once

// touch is Touch during a test: the go command tracks only reads during a test.
func touch(tb testing.TB) {
	tb.Helper()
	root, err := moduleRoot()
	if err == nil {
		err = Touch(filepath.Join(root, "cmd"), filepath.Join(root, "pkg"), filepath.Join(root, "services"))
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Rely declares that a test depends on the binary that is built from this module.
func Rely(tb testing.TB) {
	tb.Helper()
	touched.Do(func() { touch(tb) })
}
