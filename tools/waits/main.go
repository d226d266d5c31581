// Command waits fails for tests that wait for wall-clock time longer than 2 s,
// except for those that allowed.txt names with a reason, at most 20.
//
//	waits [DIR]    reads the repository at DIR; without it, the one of the working directory
//
// It reads the syntax of tests and of the packages below test/, and reports
//
//   - time.Sleep, and a receive from time.After, time.Tick or a timer outside of a select,
//   - a select in which only the time can be the expected end: the case of the timer
//     does not fail the test, and every other case does or waits for the context.
//
// A duration is computed from constants, of other packages too; of a random one
// the upper bound counts. A duration that cannot be computed is reported, except
// where it is a parameter: then the calls of the function are read. A bubble of
// testing/synctest, a benchmark, and a bound after which a test fails are not
// waits.
//
// What it cannot see is a time that a test passes to the product and sits out.
// The ten slowest tests in the table of CI show those.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) > 1 {
		return fmt.Errorf("expected at most one folder")
	}
	root := strings.Join(args, "")
	if root == "" {
		top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
		if err != nil {
			return fmt.Errorf("find the repository: %w", err)
		}
		root = strings.TrimSpace(string(top))
	}
	tree, err := load(root)
	if err != nil {
		return err
	}
	return check(tree.waits(), allowedFile, out)
}
