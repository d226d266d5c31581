package process

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if name := os.Getenv("ATTEMPT"); name != "" {
		attempt(name, os.Getenv("OUTSIDE"))
	}
	goleak.VerifyTestMain(m)
}

// run runs a command line and returns its output, errors included.
func run(ctx context.Context, t *testing.T, c Command) (Exit, string) {
	t.Helper()
	var output bytes.Buffer
	c.Dir, c.Environ, c.Mark, c.Output = t.TempDir(), os.Environ(), "test", &output
	exit, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return exit, output.String()
}

func TestRunReturnsExitAndOutput(t *testing.T) {
	for line, want := range map[string]struct {
		code, signal int
		output       string
	}{
		"echo out; echo err >&2": {0, 0, "out\nerr\n"},
		"exit 3":                 {3, 0, ""},
		"kill -9 $$":             {137, 9, ""},
		"cat":                    {0, 0, "input"},
		"echo $" + MarkVariable:  {0, 0, "test\n"},
	} {
		exit, output := run(context.Background(), t, Command{Line: line, Input: "input"})
		if exit.Code != want.code || exit.Signal != want.signal || output != want.output || exit.Stopped || exit.Error != "" {
			t.Errorf("%s: got %+v, %q", line, exit, output)
		}
	}
}

func TestRunNamesWhatTheShellLeft(t *testing.T) {
	exit, _ := run(context.Background(), t, Command{Line: "setsid sleep 3600 & exit 0"})
	if !slices.Equal(exit.Left, []string{"sleep"}) {
		t.Fatalf("got %+v, want one sleep left", exit)
	}
}

func TestRunIsStopped_WhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if exit, _ := run(ctx, t, Command{Line: "sleep 3600"}); !exit.Stopped {
		t.Fatalf("got %+v, want a stopped command", exit)
	}
}

func TestRunReportsWhyACommandCannotStart(t *testing.T) {
	exit, err := Run(context.Background(), Command{Line: "true", Dir: "/no/such/folder", Output: &bytes.Buffer{}})
	if err != nil || exit.Error == "" {
		t.Fatalf("got %+v, %v, want an error in Exit", exit, err)
	}
}
