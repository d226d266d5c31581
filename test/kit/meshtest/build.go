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

// Binaries are the programs that a mesh consists of.
type Binaries struct {
	// Harness has failpoints.
	Harness string
	// NATS is the server that the module requires.
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

// Touch looks at what a binary is built from. The go command cannot see that a
// test that drives the binary depends on it and would show an old result
// otherwise; it does keep account of the files that a test looks at.
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

var touched sync.Once

// touch is Touch from within a test: what is looked at before is not kept account of.
func touch(tb testing.TB) {
	tb.Helper()
	if err := Touch("../../cmd", "../../pkg", "../../services"); err != nil {
		tb.Fatal(err)
	}
}

// Rely says that a test depends on the binary that is built from this module.
func Rely(tb testing.TB) {
	tb.Helper()
	touched.Do(func() { touch(tb) })
}
